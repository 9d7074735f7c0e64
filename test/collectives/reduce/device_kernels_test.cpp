// Reduction kernels on a device compared with the host's kernels, and the errors without a device.
#include "collectives/reduce/device/kernels.h"

#include <cstring>

#include "test/collectives/reduce/device_passes.h"
#include "test/collectives/support/devices.h"
#include "transports/error.h"

namespace kolo {
namespace {

using device::Buffer;
using test::has_device;
using test::PassCase;

// A full tile of the narrowest type, and more than a tile of all other types.
constexpr std::size_t kTileElements = 8192;
constexpr std::size_t kRoomBytes = std::size_t{1} << 18;

// A stream and buffers for the four operands of any pass here. Made once, because thousands of
// passes follow.
struct Arena {
  device::OwnStream stream;
  Buffer rooms[4] = {Buffer(kRoomBytes), Buffer(kRoomBytes), Buffer(kRoomBytes),
                     Buffer(kRoomBytes)};
};

// A host buffer's copy on the device.
class Mirror {
 public:
  Mirror(Arena& arena, int room, void* host, std::size_t bytes)
      : host_(host), bytes_(bytes), stream_(arena.stream), there_(arena.rooms[room].data()) {
    REQUIRE(bytes <= kRoomBytes);
    if (host_ != nullptr) device::copy(there_, host_, bytes_, stream_);
  }
  void fetch() {
    if (host_ != nullptr) device::copy(host_, there_, bytes_, stream_);
  }
  template <typename T>
  T* at(std::size_t element) const {
    return host_ == nullptr ? nullptr : reinterpret_cast<T*>(there_) + element;
  }

 private:
  void* host_;
  std::size_t bytes_;
  device::Stream stream_;
  std::byte* there_;
};

template <typename T>
void run_on_device(Arena& arena, const PassCase<T>& pass, std::size_t length, T* out, T* copy,
                   T* local, T* incoming) {
  const std::size_t bytes = length * sizeof(T);
  const bool is_out_apart = out != local && out != incoming;
  const bool is_copy_apart = copy != incoming;
  Mirror mine(arena, 0, local, bytes), theirs(arena, 1, incoming, bytes);
  Mirror apart(arena, 2, is_out_apart ? out : nullptr, bytes);
  Mirror copied(arena, 3, is_copy_apart ? copy : nullptr, bytes);
  const test::Shape& at = pass.shape;
  T* out_there = is_out_apart   ? apart.at<T>(at.out)
                 : out == local ? mine.at<T>(at.out)
                                : theirs.at<T>(at.out);
  T* copy_there = is_copy_apart ? copied.at<T>(at.copy) : theirs.at<T>(at.copy);
  device::reduce(kElementTypeOf<T>, pass.op,
                 {out_there, copy_there, mine.at<T>(at.local), theirs.at<T>(at.incoming), at.count},
                 arena.stream, pass.divisor, pass.factor);
  for (Mirror* mirror : {&mine, &theirs, &apart, &copied}) mirror->fetch();
  device::wait(arena.stream);
}

// Compares `op` on the device with the host's kernel for all pairs (a[i], b[i]).
template <typename T>
void check_all(Arena& arena, ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> found(a), expected(a.size());
  std::vector<T> incoming(b);
  run_on_device<T>(arena, {op, 1, 1, {a.size(), 0, 0, 0, 0}, test::Alias::kOutIsLocal}, a.size(),
                   found.data(), nullptr, found.data(), incoming.data());
  reduce_kernel(kElementTypeOf<T>, op)(expected.data(), nullptr, a.data(), b.data(), a.size(), 1);
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(to_string(kElementTypeOf<T>)
         << " " << to_string(op) << " of " << +a[i].bits << " and " << +b[i].bits);
    if (!test::is_same(found[i], expected[i])) REQUIRE(+found[i].bits == +expected[i].bits);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("kernels of the device have the bits of the host's", "", KOLO_EVERY_TYPE) {
  if (!has_device()) return;
  Arena arena;
  device::load(kElementTypeOf<TestType>);
  for (const ReduceOp op : test::operations<TestType>()) {
    for (const auto& pass : test::cases_of<TestType>(op, kTileElements)) {
      test::check_pass<TestType>(
          pass, [&](auto&&... operands) { run_on_device<TestType>(arena, operands...); });
    }
  }
}

TEMPLATE_TEST_CASE("device scale and multiply kernels have the bits of the host's", "",
                   KOLO_EVERY_TYPE) {
  if (!has_device()) return;
  constexpr ElementType kType = kElementTypeOf<TestType>;
  const auto in = test::operands<TestType>(kTileElements + 40, 3);
  const std::size_t count = in.size() - 1;
  std::vector<TestType> out(in), expected(in.size());
  Arena arena;
  const device::Stream stream = arena.stream;
  const auto check = [&](const auto& launch) {
    out = in;
    Mirror mirror(arena, 0, out.data(), in.size() * sizeof(TestType));
    TestType* there = mirror.at<TestType>(1);
    launch(device::Pass{there, nullptr, there, nullptr, count});
    mirror.fetch();
    device::wait(stream);
    for (std::size_t i = 1; i <= count; ++i) REQUIRE(test::is_same(out[i], expected[i]));
  };
  for (const int divisor : {1, 2, 3, 64, 1000}) {
    scale_kernel(kType)(expected.data(), in.data(), in.size(), divisor);
    check([&](const auto& pass) { device::scale(kType, pass, stream, divisor); });
  }
  if constexpr (!std::is_integral_v<TestType>) {
    for (const double factor : {1.0, -0.1, 1e-4, 3e6}) {
      multiply_kernel(kType)(expected.data(), in.data(), in.size(), factor);
      check([&](const auto& pass) { device::multiply(kType, pass, stream, factor); });
    }
  }
}

TEMPLATE_TEST_CASE("device kernels give the host's results for all pairs of 8-bit floats", "",
                   Float8E4M3, Float8E5M2) {
  if (!has_device()) return;
  Arena arena;
  std::vector<TestType> a(65536), b(65536);
  for (unsigned i = 0; i < 65536; ++i) {
    a[i].bits = static_cast<std::uint8_t>(i >> 8);
    b[i].bits = static_cast<std::uint8_t>(i);
  }
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
    check_all(arena, op, a, b);
  }
}

TEMPLATE_TEST_CASE("device sums and products of all 16-bit floats have the host's bits", "",
                   Float16, BFloat16) {
  if (!has_device()) return;
  Arena arena;
  for (const unsigned other : {0x0001u, 0x0400u, 0x3c01u, 0x3f81u, 0x7bffu, 0x7f7fu, 0xb555u}) {
    std::vector<TestType> a(65536), b(65536);
    for (unsigned i = 0; i < 65536; ++i) {
      a[i].bits = static_cast<std::uint16_t>(i);
      b[i].bits = static_cast<std::uint16_t>(other);
    }
    check_all(arena, ReduceOp::kSum, a, b);
    check_all(arena, ReduceOp::kProduct, a, b);
  }
}

TEST_CASE("a failed device allocation reports the bytes requested and the bytes free") {
  if (!has_device()) return;
  CHECK_THROWS_WITH(Buffer(std::size_t{1} << 50), ContainsSubstring("1125899906842624 bytes") &&
                                                      ContainsSubstring("requested") &&
                                                      ContainsSubstring("free"));
  CHECK_NOTHROW(Buffer(1024));  // the error does not stick to later calls
}

TEST_CASE("an undefined operation and a misaligned operand are refused at once") {
  alignas(16) std::byte memory[64] = {};
  const auto pass = [&](std::size_t at) {
    return device::Pass{memory + at, nullptr, memory, memory, 4};
  };
  const auto refusal = [&](ElementType type, ReduceOp op, std::size_t at) {
    try {
      device::reduce(type, op, pass(at), nullptr);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal(ElementType::kFloat32, ReduceOp::kBitXor, 0),
             ContainsSubstring("not defined"));
  CHECK_THAT(refusal(ElementType::kInt32, ReduceOp::kScaledSum, 0),
             ContainsSubstring("not defined"));
  CHECK_THAT(refusal(ElementType::kFloat32, ReduceOp::kSum, 2), ContainsSubstring("not aligned"));
  CHECK_THROWS_AS(device::multiply(ElementType::kInt8, pass(0), nullptr, 2), std::invalid_argument);
  CHECK_THROWS_AS(device::scale(ElementType::kInt8, pass(0), nullptr, 0), std::invalid_argument);
}

TEST_CASE("without a device every call reports the reason") {
  if (device::why_unusable().empty()) {
    WARN("skipped: there is a device");
    return;
  }
  CHECK(device::count() == 0);
  CHECK_THAT(device::why_unusable(), ContainsSubstring("driver"));
  CHECK_THAT(device::description(), ContainsSubstring("driver"));
  try {
    const Buffer buffer(16);
    FAIL("memory of a device that is not there");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnavailable);
    CHECK_THAT(error.what(), ContainsSubstring("16 bytes of device memory"));
  }
}

}  // namespace kolo
