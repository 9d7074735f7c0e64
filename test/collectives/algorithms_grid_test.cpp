// Grid test of algorithms: every algorithm of every collective over every transport, with 1 to 9
// ranks and 16, awkward counts, and all types. grid_test.cpp has more counts and operations.
#include <atomic>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kSegmentBytes = 1024;

struct Case {
  std::size_t count = 0;
  ReduceOp op = ReduceOp::kSum;
  bool is_in_place = false;
  std::string_view algorithm;

  CallOptions options() const { return {.algorithm = algorithm}; }
};

template <typename T>
constexpr bool kIsNarrow = std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;

// The input of rank `rank` at `index`. Values are small, so that sums are exact in any order. They
// are smaller still for 8-bit floats, and not negative for unsigned types.
template <typename T>
int value_of(int rank, std::size_t index) {
  const std::size_t mixed = static_cast<std::size_t>(rank) * 5 + index * 3 + index / 7;
  if constexpr (kIsNarrow<T>) return static_cast<int>((mixed + mixed / 3) % 2);
  return static_cast<int>(mixed % 8) - (std::is_unsigned_v<T> ? 0 : 3);
}

// The reduction over the ranks [first, first + ranks).
template <typename T>
double reduced(int ranks, std::size_t index, ReduceOp op, int first = 0) {
  double result = value_of<T>(first, index);
  for (int rank = first + 1; rank < first + ranks; ++rank) {
    const double value = value_of<T>(rank, index);
    if (op == ReduceOp::kMin) result = std::min(result, value);
    if (op == ReduceOp::kMax) result = std::max(result, value);
    if (op == ReduceOp::kSum || op == ReduceOp::kAverage) result += value;
  }
  return op == ReduceOp::kAverage ? result / ranks : result;
}

template <typename T>
T element(double value) {
  return static_cast<T>(value);
}
template <>
BFloat16 element<BFloat16>(double value) {
  return to_bfloat16(static_cast<float>(value));
}
template <>
Float16 element<Float16>(double value) {
  return to_float16(static_cast<float>(value));
}
template <>
Float8E4M3 element<Float8E4M3>(double value) {
  return to_float8_e4m3(static_cast<float>(value));
}
template <>
Float8E5M2 element<Float8E5M2>(double value) {
  return to_float8_e5m2(static_cast<float>(value));
}

// Elements [first, first + count) of the input of `rank`.
template <typename T>
std::vector<T> given(int rank, std::size_t first, std::size_t count) {
  std::vector<T> data;
  for (std::size_t i = 0; i < count; ++i) data.push_back(element<T>(value_of<T>(rank, first + i)));
  return data;
}

// Requires that `data` equals `expected(i)` bit for bit, for the elements from `first` on.
template <typename T, typename Expected>
void expect_elements(const Case& c, const T* data, std::size_t first, std::size_t count,
                     const Expected& expected) {
  for (std::size_t i = first; i < first + count; ++i) {
    const T wanted = element<T>(expected(i));
    if (std::memcmp(&data[i - first], &wanted, sizeof(T)) == 0) continue;
    expect(false, std::string(c.algorithm) + " of " + std::to_string(c.count) +
                      (c.is_in_place ? " in place" : "") + ": element " + std::to_string(i));
  }
}

// A rank's chunk, or the chunk of another rank.
struct Share {
  Share(const Communicator& communicator, std::size_t all)
      : begin(chunk_begin(all, communicator.size(), communicator.rank())),
        count(chunk_count(all, communicator.size(), communicator.rank())) {}
  Share(std::size_t first, std::size_t length) : begin(first), count(length) {}
  std::size_t begin;
  std::size_t count;
};

template <typename T>
void run_all_reduce(Communicator& communicator, const Case& c) {
  std::vector<T> in = given<T>(communicator.rank(), 0, c.count);
  std::vector<T> out(c.count);
  T* to = c.is_in_place ? in.data() : out.data();
  communicator.all_reduce(in, std::span(to, c.count), c.op, c.options());
  expect_elements(c, to, 0, c.count,
                  [&](std::size_t i) { return reduced<T>(communicator.size(), i, c.op); });
}

template <typename T>
void run_reduce_scatter(Communicator& communicator, const Case& c) {
  const Share mine(communicator, c.count);
  std::vector<T> in = given<T>(communicator.rank(), 0, c.count);
  std::vector<T> out(mine.count);
  T* to = c.is_in_place ? in.data() + mine.begin : out.data();
  communicator.reduce_scatter(in, std::span(to, mine.count), c.op, c.options());
  expect_elements(c, to, mine.begin, mine.count,
                  [&](std::size_t i) { return reduced<T>(communicator.size(), i, c.op); });
}

// The concatenation of all ranks' chunks.
template <typename T>
void expect_gathered(int size, const Case& c, const T* data) {
  for (int rank = 0; rank < size; ++rank) {
    const std::size_t begin = chunk_begin(c.count, size, rank);
    expect_elements(c, data + begin, begin, chunk_count(c.count, size, rank),
                    [&](std::size_t i) { return value_of<T>(rank, i); });
  }
}

template <typename T>
void run_all_gather(Communicator& communicator, const Case& c) {
  const Share mine(communicator, c.count);
  const std::vector<T> in = given<T>(communicator.rank(), mine.begin, mine.count);
  std::vector<T> out(c.count);
  if (c.is_in_place) std::copy(in.begin(), in.end(), out.data() + mine.begin);
  communicator.all_gather(
      std::span(c.is_in_place ? out.data() + mine.begin : in.data(), mine.count), out, c.options());
  expect_gathered(communicator.size(), c, out.data());
}

template <typename T>
void run_all_to_all(Communicator& communicator, const Case& c) {
  const auto n = static_cast<std::size_t>(communicator.size());
  const std::size_t share = c.count / n;
  const std::vector<T> in = given<T>(communicator.rank(), 0, share * n);
  std::vector<T> out = c.is_in_place ? in : std::vector<T>(share * n);
  communicator.all_to_all({c.is_in_place ? out.data() : in.data(), share * n, kElementTypeOf<T>},
                          {out.data(), share * n, kElementTypeOf<T>}, c.options());
  const std::size_t begin = static_cast<std::size_t>(communicator.rank()) * share;
  for (std::size_t giver = 0; giver < n; ++giver) {
    expect_elements(c, out.data() + giver * share, begin, share,
                    [&](std::size_t i) { return value_of<T>(static_cast<int>(giver), i); });
  }
}

template <typename T>
void run_scan(Communicator& communicator, const Case& c) {
  if (c.op == ReduceOp::kAverage) return;
  std::vector<T> in = given<T>(communicator.rank(), 0, c.count);
  std::vector<T> out(c.count);
  T* to = c.is_in_place ? in.data() : out.data();
  communicator.scan(in, std::span(to, c.count), c.op, c.options());
  expect_elements(c, to, 0, c.count,
                  [&](std::size_t i) { return reduced<T>(communicator.rank() + 1, i, c.op); });
}

template <typename T>
void run_exclusive_scan(Communicator& communicator, const Case& c) {
  if (c.op == ReduceOp::kAverage) return;
  const bool is_first = communicator.rank() == 0;
  std::vector<T> in = given<T>(communicator.rank(), 0, c.count);
  std::vector<T> out(c.count);
  T* to = c.is_in_place ? in.data() : out.data();
  communicator.exclusive_scan(in, {is_first ? nullptr : to, c.count, kElementTypeOf<T>}, c.op,
                              c.options());
  expect_elements(c, to, 0, is_first ? 0 : c.count,
                  [&](std::size_t i) { return reduced<T>(communicator.rank(), i, c.op); });
}

// --- with a root ---

template <typename T>
void run_broadcast(Communicator& communicator, const Case& c, int root) {
  std::vector<T> data(c.count);
  if (communicator.rank() == root) data = given<T>(root, 0, c.count);
  communicator.broadcast(data, root, c.options());
  expect_elements(c, data.data(), 0, c.count, [&](std::size_t i) { return value_of<T>(root, i); });
}

template <typename T>
void run_reduce(Communicator& communicator, const Case& c, int root) {
  const bool is_root = communicator.rank() == root;
  std::vector<T> in = given<T>(communicator.rank(), 0, c.count);
  std::vector<T> out(c.count);
  T* to = c.is_in_place ? in.data() : out.data();
  communicator.reduce(in, {is_root ? to : nullptr, c.count, kElementTypeOf<T>}, root, c.op,
                      c.options());
  expect_elements(c, to, 0, is_root ? c.count : 0,
                  [&](std::size_t i) { return reduced<T>(communicator.size(), i, c.op); });
  expect_elements(c, in.data(), 0, is_root ? 0 : c.count,
                  [&](std::size_t i) { return value_of<T>(communicator.rank(), i); });
}

template <typename T>
void run_gather(Communicator& communicator, const Case& c, int root) {
  const Share mine(communicator, c.count);
  const bool is_root = communicator.rank() == root;
  const std::vector<T> in = given<T>(communicator.rank(), mine.begin, mine.count);
  std::vector<T> out(c.count);
  const bool is_in_place = is_root && c.is_in_place;
  if (is_in_place) std::copy(in.begin(), in.end(), out.data() + mine.begin);
  communicator.gather(std::span(is_in_place ? out.data() + mine.begin : in.data(), mine.count),
                      {is_root ? out.data() : nullptr, c.count, kElementTypeOf<T>}, root,
                      c.options());
  if (is_root) expect_gathered(communicator.size(), c, out.data());
}

template <typename T>
void run_scatter(Communicator& communicator, const Case& c, int root) {
  const Share mine(communicator, c.count);
  const bool is_root = communicator.rank() == root;
  std::vector<T> in = given<T>(root, 0, c.count);
  std::vector<T> out(mine.count);
  T* to = is_root && c.is_in_place ? in.data() + mine.begin : out.data();
  communicator.scatter({is_root ? in.data() : nullptr, c.count, kElementTypeOf<T>},
                       std::span(to, mine.count), root, c.options());
  expect_elements(c, to, mine.begin, mine.count,
                  [&](std::size_t i) { return value_of<T>(root, i); });
}

// --- with servers, or between two ranks ---

// The dedicated servers are the first ranks, so the workers are contiguous.
std::vector<ServerPlan> plans_for(int size) {
  std::vector<ServerPlan> plans = {{true, {}}};
  if (size > 1) plans.push_back({false, {0}});
  if (size > 2) plans.push_back({false, {0, 1}});
  if (size > 3) plans.push_back(balanced_plan({0}, size));
  return plans;
}

template <typename T>
void run_push(Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  for (const ServerPlan& plan : plans_for(communicator.size())) {
    const auto servers = static_cast<int>(plan.servers.size());
    const ServerShare mine = share_of(plan, rank, communicator.size(), c.count);
    const bool works = rank >= servers, serves = plan.everywhere || !works;
    std::vector<T> in = given<T>(rank, 0, c.count);
    std::vector<T> out(mine.count);
    T* to = c.is_in_place && plan.everywhere ? in.data() + mine.begin : out.data();
    communicator.push({works ? in.data() : nullptr, c.count, kElementTypeOf<T>},
                      {serves ? to : nullptr, serves ? mine.count : 0, kElementTypeOf<T>}, c.op,
                      plan, {}, c.options());
    expect_elements(c, to, mine.begin, mine.count, [&](std::size_t i) {
      return reduced<T>(communicator.size() - servers, i, c.op, servers);
    });
  }
}

template <typename T>
void run_pull(Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  for (const ServerPlan& plan : plans_for(size)) {
    const auto servers = static_cast<int>(plan.servers.size());
    const ServerShare mine = share_of(plan, rank, size, c.count);
    const bool works = rank >= servers, serves = plan.everywhere || !works;
    std::vector<T> in = given<T>(rank, mine.begin, mine.count);
    std::vector<T> out(c.count);
    const bool is_in_place = c.is_in_place && plan.everywhere;
    T* from = is_in_place ? out.data() + mine.begin : in.data();
    if (is_in_place) std::ranges::copy(in, from);
    communicator.pull({serves ? from : nullptr, serves ? mine.count : 0, kElementTypeOf<T>},
                      {works ? out.data() : nullptr, c.count, kElementTypeOf<T>}, plan,
                      c.options());
    for (int owner = 0; works && owner < size; ++owner) {
      const ServerShare theirs = share_of(plan, owner, size, c.count);
      expect_elements(c, out.data() + theirs.begin, theirs.begin, theirs.count,
                      [&](std::size_t i) { return value_of<T>(owner, i); });
    }
  }
}

template <typename T>
void run_push_pull(Communicator& communicator, const Case& c) {
  const int size = communicator.size();
  for (const ServerPlan& plan : plans_for(size)) {
    const auto servers = static_cast<int>(plan.servers.size());
    const bool works = communicator.rank() >= servers;
    std::vector<T> in = given<T>(communicator.rank(), 0, c.count);
    std::vector<T> out(c.count);
    T* to = c.is_in_place ? in.data() : out.data();
    communicator.push_pull({works ? in.data() : nullptr, c.count, kElementTypeOf<T>},
                           {works ? to : nullptr, c.count, kElementTypeOf<T>}, c.op, plan, {},
                           c.options());
    expect_elements(c, to, 0, works ? c.count : 0,
                    [&](std::size_t i) { return reduced<T>(size - servers, i, c.op, servers); });
  }
}

// Each rank sends to the next one. All but rank 0 receive before they send.
template <typename T>
void run_message(Communicator& communicator, const Case& c) {
  const int rank = communicator.rank();
  const int size = communicator.size();
  if (size == 1) return;
  const int left = (rank + size - 1) % size;
  const std::vector<T> mine = given<T>(rank, 0, c.count);
  std::vector<T> theirs(c.count);
  const auto send = [&] { communicator.send(mine, (rank + 1) % size, c.options()); };
  if (rank == 0) send();
  communicator.receive(theirs, left, c.options());
  if (rank != 0) send();
  const auto expected = [&](std::size_t i) { return value_of<T>(left, i); };
  expect_elements(c, theirs.data(), 0, c.count, expected);
}

// --- the table ---

template <typename T>
void run_collective(Collective collective, Communicator& communicator, const Case& c) {
  using Body = void (*)(Communicator&, const Case&);
  using RootedBody = void (*)(Communicator&, const Case&, int root);
  static const std::pair<Collective, Body> kBodies[] = {
      {Collective::kAllReduce, run_all_reduce<T>},
      {Collective::kReduceScatter, run_reduce_scatter<T>},
      {Collective::kAllGather, run_all_gather<T>},
      {Collective::kAllToAll, run_all_to_all<T>},
      {Collective::kScan, run_scan<T>},
      {Collective::kExclusiveScan, run_exclusive_scan<T>},
      {Collective::kPushPull, run_push_pull<T>},
      {Collective::kPush, run_push<T>},
      {Collective::kPull, run_pull<T>},
      {Collective::kMessage, run_message<T>}};
  static const std::pair<Collective, RootedBody> kRootedBodies[] = {
      {Collective::kBroadcast, run_broadcast<T>},
      {Collective::kReduce, run_reduce<T>},
      {Collective::kGather, run_gather<T>},
      {Collective::kScatter, run_scatter<T>}};
  for (const auto& body : kBodies) {
    if (body.first == collective) body.second(communicator, c);
  }
  for (const auto& body : kRootedBodies) {
    if (body.first != collective) continue;
    body.second(communicator, c, 0);
    body.second(communicator, c, communicator.size() - 1);
  }
}

// Rotates over the types, each with an operation that is exact in it.
void run_with_type(std::size_t turn, Collective collective, Communicator& communicator, Case c) {
  using Run = void (*)(Collective, Communicator&, const Case&);
  static const Run kRuns[] = {
      run_collective<double>,        run_collective<Float16>,      run_collective<std::int8_t>,
      run_collective<Float8E4M3>,    run_collective<std::uint8_t>, run_collective<std::int16_t>,
      run_collective<Float8E5M2>,    run_collective<std::int32_t>, run_collective<std::uint16_t>,
      run_collective<std::uint32_t>, run_collective<std::uint64_t>};
  static const ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax};
  c.op = kOps[turn % std::size(kOps)];
  kRuns[turn % std::size(kRuns)](collective, communicator, c);
}

// Larger jobs use fewer counts, because their threads outnumber the cores.
std::vector<std::size_t> counts_for(int size) {
  const auto n = static_cast<std::size_t>(size);
  if (size > 8) return {0, n - 1, 997};
  return {0, 1, n - 1, n + 1, 997, 6 * n * (kSegmentBytes / 4) + 5};
}

void run_algorithms(Collective collective) {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE_REF(from_range(sizes_over(transport)));
  CommunicatorOptions options;
  options.segment_bytes = kSegmentBytes;
  // Sanitizers and injected faults look at memory and order, which are the same for all types.
  const bool has_few_types = all_or_few<bool>({false}, {true}).front();
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        std::size_t turn = static_cast<std::size_t>(size);
        for (const std::string_view algorithm : algorithm_names(collective)) {
          for (const std::size_t count : counts_for(size)) {
            for (const bool in_place : {false, true}) {
              const auto with = [&](ReduceOp op) { return Case{count, op, in_place, algorithm}; };
              run_collective<float>(collective, communicator, with(ReduceOp::kSum));
              run_with_type(turn++, collective, communicator, with(ReduceOp::kSum));
              if (size > 5 || has_few_types) continue;
              run_collective<BFloat16>(collective, communicator, with(ReduceOp::kAverage));
              run_collective<std::int64_t>(collective, communicator, with(ReduceOp::kMax));
            }
          }
        }
      },
      options);
}

// Collectives that have data.
constexpr Collective kInTheGrid[] = {
    Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
    Collective::kBroadcast, Collective::kReduce,        Collective::kGather,
    Collective::kScatter,   Collective::kAllToAll,      Collective::kScan,
    Collective::kMessage,   Collective::kExclusiveScan, Collective::kPushPull,
    Collective::kPush,      Collective::kPull};

// Floats whose sums depend on the order, zeros of both signs, and NaNs with different bits.
std::vector<float> treacherous(int rank, std::size_t count, bool has_nans) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> data;
  for (std::size_t i = 0; i < count; ++i) {
    const auto kind = random() % 8;
    const std::uint32_t bits = 0x7fc00000U + static_cast<std::uint32_t>(rank);
    float value = any(random);
    if (kind == 0) value = 0.0F;
    if (kind == 1) value = -0.0F;
    if (kind == 2 && has_nans) std::memcpy(&value, &bits, sizeof(value));
    data.push_back(value);
  }
  return data;
}

}  // namespace

TEST_CASE("every all_reduce algorithm works") { run_algorithms(Collective::kAllReduce); }
TEST_CASE("every reduce_scatter algorithm works") { run_algorithms(Collective::kReduceScatter); }
TEST_CASE("every all_gather algorithm works") { run_algorithms(Collective::kAllGather); }
TEST_CASE("every broadcast algorithm works") { run_algorithms(Collective::kBroadcast); }
TEST_CASE("every reduce algorithm works") { run_algorithms(Collective::kReduce); }
TEST_CASE("every gather algorithm works") { run_algorithms(Collective::kGather); }
TEST_CASE("every scatter algorithm works") { run_algorithms(Collective::kScatter); }
TEST_CASE("every all_to_all algorithm works") { run_algorithms(Collective::kAllToAll); }
TEST_CASE("every scan algorithm works") { run_algorithms(Collective::kScan); }
TEST_CASE("every exclusive_scan algorithm works") { run_algorithms(Collective::kExclusiveScan); }
TEST_CASE("every push_pull algorithm works") { run_algorithms(Collective::kPushPull); }
TEST_CASE("every push algorithm works") { run_algorithms(Collective::kPush); }
TEST_CASE("every pull algorithm works") { run_algorithms(Collective::kPull); }
TEST_CASE("every message algorithm works") { run_algorithms(Collective::kMessage); }

TEST_CASE("no rank leaves a barrier of any algorithm before every rank has entered it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE_REF(from_range(sizes_over(transport)));
  std::atomic<int> arrivals{0};
  run_ranks(size, transport, [&](Communicator& communicator) {
    int round = 0;
    for (const std::string_view algorithm : algorithm_names(Collective::kBarrier)) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        ++arrivals;
        communicator.barrier({.algorithm = algorithm});
        ++round;
        expect(arrivals >= round * size, std::string(algorithm) + " let a rank go early");
      }
    }
  });
}

TEST_CASE("the grid leaves out no collective of the table") {
  std::set<Collective> covered(std::begin(kInTheGrid), std::end(kInTheGrid));
  covered.insert(Collective::kBarrier);
  for (const Algorithm& algorithm : algorithms()) {
    INFO(to_string(algorithm.collective));
    REQUIRE(covered.count(algorithm.collective) == 1);
  }
}

TEST_CASE("every all_reduce algorithm gives all ranks the same bits") {
  const auto size = GENERATE(2, 3, 5, 8);
  run_ranks(size, transports_under_test().front(), [](Communicator& communicator) {
    constexpr std::size_t kCount = 3001;
    for (const std::string_view algorithm : algorithm_names(Collective::kAllReduce)) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax}) {
        const bool has_nans = op != ReduceOp::kSum;
        std::vector<float> mine = treacherous(communicator.rank(), kCount, has_nans);
        communicator.all_reduce({mine.data(), kCount, ElementType::kFloat32}, op,
                                {.algorithm = algorithm});
        std::vector<float> first = mine;
        communicator.broadcast({first.data(), kCount, ElementType::kFloat32}, 0);
        expect(std::memcmp(first.data(), mine.data(), kCount * sizeof(float)) == 0,
               std::string(algorithm) + " " + std::string(to_string(op)) + ": other bits");
      }
    }
  });
}

}  // namespace kolo::test
