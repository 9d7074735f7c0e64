// Scaled sums: every algorithm of every reduction gives the bits of a product followed by a sum in
// that algorithm's order, for every float type, over every transport.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

template <typename T>
T element(float value) {
  return static_cast<T>(value);
}
template <>
BFloat16 element<BFloat16>(float value) {
  return to_bfloat16(value);
}
template <>
Float16 element<Float16>(float value) {
  return to_float16(value);
}
template <>
Float8E4M3 element<Float8E4M3>(float value) {
  return to_float8_e4m3(value);
}
template <>
Float8E5M2 element<Float8E5M2>(float value) {
  return to_float8_e5m2(value);
}

template <typename T>
T multiplied(T value, double factor) {
  if constexpr (std::is_same_v<T, double>) {
    return value * factor;
  } else if constexpr (std::is_same_v<T, float>) {
    return value * static_cast<float>(factor);
  } else {
    return element<T>(to_float(value) * static_cast<float>(factor));
  }
}

// Every rank has a different factor, not exact in any float; the factor of rank 2 is 1.
double factor_of(int rank) { return rank == 2 ? 1.0 : 0.3 * (rank + 1) * (rank % 2 == 0 ? 1 : -1); }

template <typename T>
std::vector<T> given(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> any(-2, 2);
  std::vector<T> data;
  for (std::size_t i = 0; i < count; ++i) data.push_back(element<T>(any(random)));
  return data;
}

struct Case {
  Collective collective = Collective::kAllReduce;
  std::string_view algorithm = {};
  std::size_t count = 0;
  bool is_in_place = false;
  bool has_server = false;  // push, push_pull: rank 0 is a dedicated server
};

// Input and output of a rank.
template <typename T>
struct Data {
  std::vector<T> in;
  std::vector<T> apart;
  T* out = nullptr;
  std::size_t gets = 0;
};

template <typename T>
Data<T> data_of(const Communicator& communicator, const Case& c) {
  Data<T> data{given<T>(communicator.rank(), c.count), std::vector<T>(c.count)};
  data.gets = c.count;
  std::size_t begin = 0;
  const bool is_push = c.collective == Collective::kPush;
  if (c.collective == Collective::kReduceScatter || (is_push && !c.has_server)) {
    begin = chunk_begin(c.count, communicator.size(), communicator.rank());
    data.gets = chunk_count(c.count, communicator.size(), communicator.rank());
  }
  const bool is_first = communicator.rank() == 0;
  if (c.collective == Collective::kReduce && !is_first) data.gets = 0;
  if (c.collective == Collective::kExclusiveScan && is_first) data.gets = 0;
  if (c.has_server && is_first != is_push) data.gets = 0;
  data.out = data.gets == 0 ? nullptr : c.is_in_place ? data.in.data() + begin : data.apart.data();
  return data;
}

template <typename T>
void call(Communicator& communicator, const Case& c, Data<T>& data, ReduceOp op, double scale) {
  constexpr ElementType kType = kElementTypeOf<T>;
  const CallOptions options{.algorithm = c.algorithm, .scale = scale};
  const T* in = data.in.data();
  switch (c.collective) {
    case Collective::kAllReduce:
      return communicator.all_reduce({in, c.count, kType}, {data.out, c.count, kType}, op, options);
    case Collective::kReduceScatter:
      return communicator.reduce_scatter(
          {in, c.count, kType},
          {data.out, chunk_count(c.count, communicator.size(), communicator.rank()), kType}, op,
          options);
    case Collective::kReduce:
      return communicator.reduce({in, c.count, kType}, {data.out, c.count, kType}, 0, op, options);
    case Collective::kScan:
      return communicator.scan({in, c.count, kType}, {data.out, c.count, kType}, op, options);
    case Collective::kExclusiveScan:
      return communicator.exclusive_scan({in, c.count, kType}, {data.out, c.count, kType}, op,
                                         options);
    default:
      ServerPlan plan{.everywhere = !c.has_server, .servers = {}};
      if (c.has_server) plan.servers = {0};
      if (c.has_server && communicator.rank() == 0) in = nullptr;
      if (c.collective == Collective::kPush)
        return communicator.push({in, c.count, kType}, {data.out, data.gets, kType}, op, plan, {},
                                 options);
      return communicator.push_pull({in, c.count, kType}, {data.out, c.count, kType}, op, plan, {},
                                    options);
  }
}

template <typename T>
void run(Communicator& communicator, const Case& c) {
  const double factor = factor_of(communicator.rank());
  Data<T> scaled = data_of<T>(communicator, c);
  Data<T> before = data_of<T>(communicator, c);
  for (T& value : before.in) value = multiplied(value, factor);
  call(communicator, c, scaled, ReduceOp::kScaledSum, factor);
  call(communicator, c, before, ReduceOp::kSum, 1);
  expect(scaled.gets == 0 || std::memcmp(scaled.out, before.out, scaled.gets * sizeof(T)) == 0,
         std::string(to_string(c.collective)) + " " + std::string(c.algorithm) + " of " +
             std::to_string(c.count) + " " + std::string(to_string(kElementTypeOf<T>)) +
             (c.is_in_place ? " in place" : "") + ": other bits than of scaling first");
  const bool is_input_kept = scaled.out != nullptr && !c.is_in_place;
  expect(
      !is_input_kept || std::memcmp(scaled.in.data(), given<T>(communicator.rank(), c.count).data(),
                                    c.count * sizeof(T)) == 0,
      "the input was changed");
}

template <typename T>
void run_rows(Communicator& communicator) {
  const auto n = static_cast<std::size_t>(communicator.size());
  for (const Algorithm& row : algorithms()) {
    if (!is_reduction(row.collective)) continue;
    for (const std::size_t count : {std::size_t{1}, n + 1, std::size_t{331}, 3 * n * 64 + 5}) {
      for (const bool is_in_place : {false, true}) {
        Case c{row.collective, row.name, count, is_in_place};
        run<T>(communicator, c);
        if (!has_servers(row.collective) || n == 1) continue;
        c.has_server = true;
        run<T>(communicator, c);
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("every algorithm's scaled sum has the bits of scaling first", "", float, double,
                   BFloat16, Float16, Float8E4M3, Float8E5M2) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const bool is_wide = sizeof(TestType) >= sizeof(float);
  const auto size = GENERATE_COPY(
      from_range(is_wide ? all_or_few({1, 2, 3, 5, 8}, {1, 2, 5}) : std::vector<int>{2, 5}));
  CommunicatorOptions options;
  options.segment_bytes = 256;
  run_ranks(size, transport, run_rows<TestType>, options);
}

TEST_CASE("each rank scales by its own factor, in float64 and in long segments") {
  run_ranks(4, transports_under_test().front(), [](Communicator& communicator) {
    std::vector<double> data(100'003, 3);
    communicator.all_reduce(data, ReduceOp::kScaledSum,
                            {.scale = std::pow(10, communicator.rank())});
    expect(data == std::vector<double>(data.size(), 3333), "3 + 30 + 300 + 3000");
  });
}

TEST_CASE("persistent and asynchronous scaled sums keep their factor") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    float in = 1, out = 0;
    const double scale = communicator.rank() + 1;
    Work planned = communicator.all_reduce_async(
        {&in, 1, ElementType::kFloat32}, {&out, 1, ElementType::kFloat32}, ReduceOp::kScaledSum,
        {.is_persistent = true, .scale = scale});
    for (in = 1; in < 4; ++in) {
      planned.start();
      planned.wait();
      expect(out == 3 * in, "once, and twice");
    }
    communicator
        .all_reduce_async({&in, 1, ElementType::kFloat32}, ReduceOp::kScaledSum, {.scale = scale})
        .wait();
    expect(in == 12, "in place");
    communicator.all_reduce({&in, 1, ElementType::kFloat32}, ReduceOp::kSum);
    expect(in == 24, "the next operation scales nothing");
  });
}

TEST_CASE("scaled sums work with uneven shares") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    const std::size_t counts[] = {5, 0, 200};
    std::vector<float> in(205, 2), out(200);
    communicator.reduce_scatter_v(
        in, std::span(out).first(counts[static_cast<std::size_t>(communicator.rank())]), counts,
        ReduceOp::kScaledSum, {.scale = communicator.rank() + 0.5});
    if (communicator.rank() == 2) expect(out == std::vector<float>(200, 9), "1 + 3 + 5");
  });
}

}  // namespace kolo::test
