// Planning cost: writing and compiling one rank's schedule, and the plan's memory; then finding and
// starting an existing plan. The channels carry no data, as a plan moves nothing.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <system_error>

#include "bench/interpreter/channels.h"
#include "bench/interpreter/interpreter.h"
#include "bench/measure/statistics.h"
#include "collectives/algorithms/algorithm_table.h"
#include "collectives/executor/plan_cache.h"

namespace kolo::bench {
namespace {

constexpr double kMostPlanningUs = 1000;
constexpr int kManyRanks = 1024;
constexpr double kMostStartNs = 200;
constexpr std::size_t kSmall = 1024;
constexpr std::size_t kLarge = std::size_t{1} << 30;

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// An address range as long as a message, without memory.
class Addresses {
 public:
  explicit Addresses(std::size_t bytes)
      : bytes_(bytes),
        at_(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  }
  ~Addresses() { munmap(at_, bytes_); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  float* data() const { return static_cast<float*>(at_); }

 private:
  std::size_t bytes_;
  void* at_;
};

Schedule write(const Algorithm& algorithm, int rank, int size) {
  PlanRequest request;
  request.ranks = {.rank = rank, .size = size, .peer = size - 1, .can_answer = true};
  request.servers.rank = rank;
  request.servers.size = size;
  request.servers.can_answer = request.servers.has_update = true;
  request.servers.servers_work = true;
  request.servers.servers.resize(static_cast<std::size_t>(size));
  std::iota(request.servers.servers.begin(), request.servers.servers.end(), 0);
  return algorithm.write(request);
}

// Median microseconds to write and compile; the slowest of three ranks.
double planning_us(const Algorithm& algorithm, int size, int repeats) {
  double longest = 0;
  for (const int rank : {0, size / 2, size - 1}) {
    const NullChannels nowhere(rank, size);
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const Executor executor(write(algorithm, rank, size), nowhere.channels());
      times.push_back(since(begin));
    }
    longest = std::max(longest, quantile(times, 0.5));
  }
  return longest;
}

// Bytes of a started plan.
std::size_t memory_of(const Algorithm& algorithm, int size, std::size_t message,
                      const InterpreterRequest& request, const Addresses& data) {
  const NullChannels nowhere(size / 2, size);
  const std::size_t before = request.allocated_bytes();
  const auto executor =
      std::make_unique<Executor>(write(algorithm, size / 2, size), nowhere.channels());
  executor->start(binding_of(data.data(), data.data(), message / sizeof(float)));
  return request.allocated_bytes() - before;
}

PlanRow row_of(const Algorithm& algorithm, int size, const InterpreterRequest& request,
               const Addresses& data) {
  PlanRow row;
  row.what = fmt::format("{} {}", to_string(algorithm.collective), algorithm.name);
  row.ranks = size;
  row.us = planning_us(algorithm, size, request.is_quick ? 1 : 31);
  if (size == kManyRanks) row.most_us = kMostPlanningUs;
  row.small = memory_of(algorithm, size, kSmall, request, data);
  row.large = memory_of(algorithm, size, kLarge, request, data);
  return row;
}

// --- existing plans ---

double median_ns(int rounds, int repeats, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) work();
    times.push_back(since(begin) * 1000 / repeats);
  }
  return quantile(times, 0.5);
}

InterpreterRow cached_row(int size, bool has_same_count, bool is_quick) {
  const NullChannels nowhere(0, size);
  const std::vector<int> hosts(static_cast<std::size_t>(size), 0);
  PlanCache cache(0, nowhere.channels(), hosts);
  constexpr std::size_t kElements = 1 << 18;
  std::vector<float> data(kElements);
  PlanCache::Key key{.algorithm = find_algorithm(Collective::kAllReduce, "ring"),
                     .data_bytes = kElements * sizeof(float)};
  for (const char* other : {"double_tree", "halving_doubling", "one_shot"}) {
    PlanCache::Key another = key;
    another.algorithm = find_algorithm(Collective::kAllReduce, other);
    cache.find(another);
  }
  std::size_t calls = 0;
  const double ns = median_ns(is_quick ? 2 : 200,
                              is_quick            ? 2
                              : size < kManyRanks ? 200
                                                  : 10,
                              [&] {
                                const std::size_t count =
                                    has_same_count || ++calls % 2 == 0 ? kElements : kElements - 1;
                                cache.find(key).start(binding_of(data.data(), data.data(), count));
                              });
  InterpreterRow row;
  row.what = has_same_count ? "cached plan, count as before" : "cached plan, another count";
  row.size = fmt::format("{} ranks", size);
  row.interpreted = row.judged = ns;
  row.unit = row.measure = "ns";
  if (has_same_count) row.limit = kMostStartNs;
  return row;
}

}  // namespace

std::vector<PlanRow> planning_rows(const InterpreterRequest& request) {
  const Addresses data(kLarge);
  std::vector<PlanRow> rows;
  for (const int size : {2, 16, 128, kManyRanks}) {
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.collective == Collective::kAllReduce || size == kManyRanks)
        rows.push_back(row_of(algorithm, size, request, data));
    }
  }
  return rows;
}

std::vector<InterpreterRow> cached_rows(const InterpreterRequest& request) {
  std::vector<InterpreterRow> rows;
  for (const bool has_same_count : {true, false}) {
    for (const int size : {2, 8, 64, kManyRanks})
      rows.push_back(cached_row(size, has_same_count, request.is_quick));
  }
  return rows;
}

}  // namespace kolo::bench
