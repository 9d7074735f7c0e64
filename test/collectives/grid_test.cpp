// Grid test: every collective over every transport, with many rank counts, counts, types and
// operations, in place and out of place. Values are small integers, so results are exact in any
// order and in every type.
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kSegmentBytes = 1024;

struct Case {
  std::size_t count = 0;
  ElementType type = ElementType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = false;
};

std::string name_of(const Case& c) {
  return std::to_string(c.count) + " " + std::string(to_string(c.type)) + " " +
         std::string(to_string(c.op)) + (c.is_in_place ? " in place" : "");
}

// The input of rank `rank` at `index`: from -4 to 4 without 0, because a product of floats could be
// -0; from 0 to 7 for unsigned types; and from -1 to 1 for types that hold no larger sums.
int value_of(int rank, std::size_t index, ElementType type) {
  const std::size_t mixed = static_cast<std::size_t>(rank) * 5 + index * 3 + index / 7;
  switch (type) {
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return static_cast<int>((mixed + mixed / 3) % 3) - 1;
    case ElementType::kUint8:
    case ElementType::kUint16:
    case ElementType::kUint32:
    case ElementType::kUint64:
      return static_cast<int>(mixed % 8);
    default:
      return static_cast<int>(mixed % 8) - (mixed % 8 < 4 ? 4 : 3);
  }
}

std::int64_t combined(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return a + b;
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kBitAnd:
      return a & b;
    case ReduceOp::kBitOr:
      return a | b;
    case ReduceOp::kBitXor:
      return a ^ b;
    case ReduceOp::kScaledSum:
    case ReduceOp::kUser:
      break;
  }
  return 0;
}

double reduced(int size, std::size_t index, const Case& c) {
  std::int64_t result = value_of(0, index, c.type);
  for (int rank = 1; rank < size; ++rank) {
    result = combined(c.op, result, value_of(rank, index, c.type));
  }
  return static_cast<double>(result) / (c.op == ReduceOp::kAverage ? size : 1);
}

// A typed buffer whose elements are read and written as doubles.
class Data {
 public:
  Data(std::size_t count, ElementType type)
      : type_(type), bytes_(count * element_bytes(type) + kGuard, std::byte{0x5a}) {}

  void* at(std::size_t index = 0) { return bytes_.data() + index * element_bytes(type_); }
  std::size_t count() const { return (bytes_.size() - kGuard) / element_bytes(type_); }

  void set(std::size_t index, double value) { put(value, at(index)); }

  // Whether element `index` equals `value` in the buffer's type, bit for bit.
  bool holds(std::size_t index, double value) const {
    std::array<std::byte, 8> wanted{};
    put(value, wanted.data());
    const std::size_t width = element_bytes(type_);
    return std::memcmp(bytes_.data() + index * width, wanted.data(), width) == 0;
  }

  bool is_guard_whole() const {
    return std::all_of(bytes_.end() - kGuard, bytes_.end(),
                       [](std::byte byte) { return byte == std::byte{0x5a}; });
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 64;

  void put(double value, void* to) const {
    const auto whole = static_cast<std::int64_t>(value);  // rounds towards zero; a longer one wraps
    const auto single = static_cast<float>(value);
    switch (type_) {
      case ElementType::kFloat32:
        return write(to, single);
      case ElementType::kFloat64:
        return write(to, value);
      case ElementType::kBFloat16:
        return write(to, to_bfloat16(single));
      case ElementType::kFloat16:
        return write(to, to_float16(single));
      case ElementType::kFloat8E4M3:
        return write(to, to_float8_e4m3(single));
      case ElementType::kFloat8E5M2:
        return write(to, to_float8_e5m2(single));
      case ElementType::kInt8:
      case ElementType::kUint8:
        return write(to, static_cast<std::uint8_t>(whole));
      case ElementType::kInt16:
      case ElementType::kUint16:
        return write(to, static_cast<std::uint16_t>(whole));
      case ElementType::kInt32:
      case ElementType::kUint32:
        return write(to, static_cast<std::uint32_t>(whole));
      case ElementType::kInt64:
      case ElementType::kUint64:
        return write(to, static_cast<std::uint64_t>(whole));
    }
  }

  template <typename T>
  static void write(void* to, T value) {
    std::memcpy(to, &value, sizeof(T));
  }

  ElementType type_;
  std::vector<std::byte> bytes_;
};

Data filled(std::size_t first, std::size_t count, int rank, ElementType type) {
  Data data(count, type);
  for (std::size_t i = 0; i < count; ++i) data.set(i, value_of(rank, first + i, type));
  return data;
}

template <typename Expected>
void expect_elements(const Data& data, std::size_t first, std::size_t count, const Case& c,
                     const Expected& expected) {
  for (std::size_t i = 0; i < count; ++i) {
    expect(data.holds(i, expected(first + i)),
           [&] { return name_of(c) + ": element " + std::to_string(first + i); });
  }
  expect(data.is_guard_whole(), name_of(c) + ": wrote past the end");
}

void all_reduce(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  Data in = filled(0, c.count, communicator.rank(), c.type);
  Data out = c.is_in_place ? in : Data(c.count, c.type);
  communicator.all_reduce({c.is_in_place ? out.at() : in.at(), c.count, c.type},
                          {out.at(), c.count, c.type}, c.op);
  expect_elements(out, 0, c.count, c, [&](std::size_t i) { return reduced(size, i, c); });
  if (c.is_in_place) return;
  expect_elements(in, 0, c.count, c,
                  [&](std::size_t i) { return value_of(communicator.rank(), i, c.type); });
}

void reduce_scatter(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  const std::size_t first = chunk_begin(c.count, size, communicator.rank());
  const std::size_t mine = chunk_count(c.count, size, communicator.rank());
  Data in = filled(0, c.count, communicator.rank(), c.type);
  Data out(mine, c.type);
  communicator.reduce_scatter(
      {in.at(), c.count, c.type},
      {c.is_in_place ? in.at(first) : out.at(),
       chunk_count(c.count, communicator.size(), communicator.rank()), c.type},
      c.op);
  for (std::size_t i = 0; i < mine; ++i) {
    const double expected = reduced(size, first + i, c);
    expect(c.is_in_place ? in.holds(first + i, expected) : out.holds(i, expected),
           [&] { return name_of(c) + ": element " + std::to_string(i); });
  }
}

void all_gather(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  const std::size_t first = chunk_begin(c.count, size, communicator.rank());
  const std::size_t mine = chunk_count(c.count, size, communicator.rank());
  Data in = filled(first, mine, communicator.rank(), c.type);
  Data out(c.count, c.type);
  for (std::size_t i = 0; i < mine; ++i)
    out.set(first + i, value_of(communicator.rank(), first + i, c.type));
  communicator.all_gather({c.is_in_place ? out.at(first) : in.at(),
                           chunk_count(c.count, communicator.size(), communicator.rank()), c.type},
                          {out.at(), c.count, c.type});
  for (int rank = 0; rank < size; ++rank) {
    const std::size_t begin = chunk_begin(c.count, size, rank);
    for (std::size_t i = begin; i < chunk_begin(c.count, size, rank + 1); ++i) {
      expect(out.holds(i, value_of(rank, i, c.type)),
             [&] { return name_of(c) + ": element " + std::to_string(i); });
    }
  }
}

void broadcast(Communicator& communicator, const Case& c) {
  for (int root = 0; root < communicator.size(); ++root) {
    Data data =
        communicator.rank() == root ? filled(0, c.count, root, c.type) : Data(c.count, c.type);
    communicator.broadcast({data.at(), c.count, c.type}, root);
    expect_elements(data, 0, c.count, c, [&](std::size_t i) { return value_of(root, i, c.type); });
  }
}

using Body = void (*)(Communicator&, const Case&);

// Counts around every threshold: chunks, the opening segment, and segments of kSegmentBytes.
std::vector<std::size_t> awkward_counts(int size) {
  const auto n = static_cast<std::size_t>(size);
  const std::size_t segment = kSegmentBytes / 4;
  return {0,
          1,
          n - 1,
          n,
          n + 1,
          10 * n,
          10 * n + 1,
          997,
          n * segment,
          n * segment + 1,
          n * segment - 1,
          3 * n * segment + 5};
}

// Run at every count: one type of each element length.
constexpr Case kEverywhere[] = {{0, ElementType::kFloat32, ReduceOp::kSum},
                                {0, ElementType::kFloat64, ReduceOp::kMax},
                                {0, ElementType::kBFloat16, ReduceOp::kAverage},
                                {0, ElementType::kInt8, ReduceOp::kSum}};

// Run at a few counts: every operation with types of every kind, and every type with a few
// operations.
constexpr Case kOnce[] = {{0, ElementType::kFloat32, ReduceOp::kAverage},
                          {0, ElementType::kFloat32, ReduceOp::kMin},
                          {0, ElementType::kFloat32, ReduceOp::kMax},
                          {0, ElementType::kFloat32, ReduceOp::kProduct},
                          {0, ElementType::kFloat64, ReduceOp::kAverage},
                          {0, ElementType::kFloat64, ReduceOp::kProduct},
                          {0, ElementType::kBFloat16, ReduceOp::kSum},
                          {0, ElementType::kBFloat16, ReduceOp::kMin},
                          {0, ElementType::kFloat16, ReduceOp::kSum},
                          {0, ElementType::kFloat16, ReduceOp::kAverage},
                          {0, ElementType::kFloat8E4M3, ReduceOp::kSum},
                          {0, ElementType::kFloat8E4M3, ReduceOp::kMax},
                          {0, ElementType::kFloat8E5M2, ReduceOp::kSum},
                          {0, ElementType::kFloat8E5M2, ReduceOp::kAverage},
                          {0, ElementType::kInt8, ReduceOp::kAverage},
                          {0, ElementType::kInt8, ReduceOp::kProduct},
                          {0, ElementType::kInt16, ReduceOp::kMin},
                          {0, ElementType::kInt16, ReduceOp::kBitOr},
                          {0, ElementType::kInt32, ReduceOp::kSum},
                          {0, ElementType::kInt32, ReduceOp::kAverage},
                          {0, ElementType::kInt32, ReduceOp::kBitXor},
                          {0, ElementType::kInt64, ReduceOp::kSum},
                          {0, ElementType::kInt64, ReduceOp::kMin},
                          {0, ElementType::kInt64, ReduceOp::kBitAnd},
                          {0, ElementType::kUint8, ReduceOp::kAverage},
                          {0, ElementType::kUint8, ReduceOp::kProduct},
                          {0, ElementType::kUint16, ReduceOp::kSum},
                          {0, ElementType::kUint16, ReduceOp::kBitAnd},
                          {0, ElementType::kUint32, ReduceOp::kMax},
                          {0, ElementType::kUint32, ReduceOp::kProduct},
                          {0, ElementType::kUint64, ReduceOp::kSum},
                          {0, ElementType::kUint64, ReduceOp::kBitOr}};

constexpr std::size_t kFewCounts[] = {11, 997, 2500};

std::vector<Case> cases(int size) {
  std::vector<Case> cases;
  const auto add = [&cases](std::size_t count, Case c) {
    c.count = count;
    for (const bool is_in_place : {false, true}) {
      c.is_in_place = is_in_place;
      cases.push_back(c);
    }
  };
  for (const std::size_t count : awkward_counts(size)) {
    for (const Case& c : kEverywhere) add(count, c);
  }
  for (const std::size_t count : kFewCounts) {
    for (const Case& c : kOnce) add(count, c);
  }
  return cases;
}

void run_grid(Body body) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE_REF(from_range(sizes_over(transport, {1, 2, 3, 5}, {2, 3})));
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        for (const Case& c : cases(size)) body(communicator, c);
      },
      options);
}

}  // namespace

TEST_CASE("all_reduce gives every rank the reduction of all") { run_grid(all_reduce); }

TEST_CASE("reduce_scatter gives every rank its chunk of the reduction") {
  run_grid(reduce_scatter);
}

TEST_CASE("all_gather gives every rank all chunks") { run_grid(all_gather); }

TEST_CASE("broadcast gives every rank the data of any root") { run_grid(broadcast); }

}  // namespace kolo::test
