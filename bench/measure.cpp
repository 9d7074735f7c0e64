#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "bench/pattern.h"

namespace kolo::bench {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kFewestPerPass = 2;
constexpr std::size_t kMostPerPass = 500;
constexpr std::uint64_t kBarrierChecks = 20;
constexpr std::chrono::microseconds kLateness{20};  // of one rank, while a barrier is checked

}  // namespace

double algorithm_bandwidth(const Row& row) {
  return gigabytes_per_second(row.bytes, row.time_us.median);
}

double bus_bandwidth(const Row& row) {
  return algorithm_bandwidth(row) *
         bus_factor(row.problem.collective, row.ranks, row.problem.servers);
}

void Bench::Memory::operator()(std::byte* memory) const { std::free(memory); }

Bench::Buffer Bench::allocate(std::size_t bytes) {
  const std::size_t whole = (bytes / kPage + 1) * kPage;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, whole));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, whole);  // no page fault is measured
  return Buffer(memory);
}

Bench::Bench(Meeting& meeting, const Arguments& arguments)
    : meeting_(meeting), arguments_(arguments), problem_(arguments.problem) {
  const bool has_data = problem_.collective != Collective::kBarrier;
  const std::size_t rounding_up =
      static_cast<std::size_t>(meeting.size()) * element_bytes(problem_.type);
  const std::size_t bytes = has_data ? arguments.max_bytes + rounding_up : 0;
  data_ = allocate(bytes);
  if (!problem_.is_in_place) input_ = allocate(bytes);
}

std::size_t Bench::chunk_begin_bytes() const {
  return chunk_begin(problem_.count, meeting_.size(), meeting_.rank()) *
         element_bytes(problem_.type);
}

void Bench::place_buffers() {
  in_ = problem_.is_in_place ? data_.get() : input_.get();
  out_ = data_.get();
  if (!problem_.is_in_place) return;
  const Collective collective = problem_.collective;
  if (collective == Collective::kReduceScatter || collective == Collective::kScatter)
    out_ += chunk_begin_bytes();
  if (collective == Collective::kAllGather || collective == Collective::kGather)
    in_ += chunk_begin_bytes();
}

std::vector<Row> Bench::measure(const std::vector<Library*>& libraries, std::size_t bytes) {
  problem_.count = bytes / element_bytes(problem_.type);
  if (problem_.collective == Collective::kAllToAll) {  // the same for everybody
    const auto size = static_cast<std::size_t>(meeting_.size());
    problem_.count = (problem_.count + size - 1) / size * size;
    bytes = problem_.count * element_bytes(problem_.type);
  }
  place_buffers();

  std::vector<std::vector<double>> times(libraries.size());
  std::vector<std::vector<double>> medians(libraries.size());
  std::vector<std::uint64_t> wrong(libraries.size());
  std::vector<std::size_t> iterations(libraries.size());
  const double cache_line_us = meeting_.cache_line_round_trip();
  for (int turn = 0; turn < arguments_.passes; ++turn) {
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      wrong_ = 0;
      iterations[i] = warm_up(*libraries[i], turn == 0 ? arguments_.warmup : 1, iterations[i]);
      const std::vector<double> more = pass(*libraries[i], iterations[i]);
      times[i].insert(times[i].end(), more.begin(), more.end());
      medians[i].push_back(quantile(more, 0.5));
      if (turn == 0 && arguments_.is_checked) wrong_ += count_wrong_barriers(*libraries[i]);
      wrong[i] += meeting_.sum(wrong_);
    }
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    rows.push_back({libraries[i]->name(), libraries[i]->transport(),
                    libraries[i]->algorithm(problem_), arguments_.command, problem_,
                    meeting_.size(), bytes, times[i].size(), quantiles(times[i]),
                    arguments_.is_checked ? std::optional(wrong[i]) : std::nullopt, cache_line_us,
                    medians[i]});
    if (rows.back().library == "kolo") rows.back().form = arguments_.form;
  }
  return rows;
}

// Returns how many iterations a pass shall have: those asked for, those of the passes before, or
// what the warm-up says.
std::size_t Bench::warm_up(Library& library, int count, std::size_t iterations) {
  const auto passes = static_cast<std::size_t>(arguments_.passes);
  if (arguments_.iterations > 0) {
    iterations = std::max<std::size_t>(1, static_cast<std::size_t>(arguments_.iterations) / passes);
  }
  double quickest = std::numeric_limits<double>::max();
  const int least = iterations == 0 ? 1 : 0;
  for (int i = 0; i < std::max(count, least); ++i)
    quickest = std::min(quickest, iterate(library).whole_us);
  if (iterations > 0) return std::min(iterations, kMostIterations);
  const double fitting = arguments_.seconds * 1e6 / arguments_.passes / meeting_.largest(quickest);
  return std::clamp(static_cast<std::size_t>(fitting), kFewestPerPass, kMostPerPass);
}

std::vector<double> Bench::pass(Library& library, std::size_t iterations) {
  std::vector<double> times;
  times.reserve(iterations);
  for (std::size_t i = 0; i < iterations; ++i) times.push_back(iterate(library).call_us);
  return meeting_.largest(times);
}

Bench::Timed Bench::iterate(Library& library) {
  const auto begin = Clock::now();
  ++iteration_;
  give();
  const bool has_data = !(is_server() && problem_.collective == Collective::kPushPull);
  meeting_.wait();
  const auto before = Clock::now();
  library.run(problem_, has_data ? in_ : nullptr, has_data ? out_ : nullptr);
  const auto after = Clock::now();
  if (arguments_.is_checked) wrong_ += count_wrong();
  return {Microseconds(after - before).count(), Microseconds(Clock::now() - begin).count()};
}

void Bench::give() {
  const int rank = meeting_.rank();
  const int workers = meeting_.size() - problem_.servers;
  const Pattern pattern{problem_.type, problem_.op, workers, iteration_};
  switch (problem_.collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
    case Collective::kPushPull:
    case Collective::kReduce:
    case Collective::kScan:
    case Collective::kExclusiveScan:
    case Collective::kAllToAll:
      if (!is_server()) fill(in_, 0, problem_.count, rank, pattern);
      return;
    case Collective::kScatter:
      if (rank == kRoot) fill(in_, 0, problem_.count, rank, pattern);
      return;
    case Collective::kAllGather:
    case Collective::kGather:
      return fill(in_, chunk_begin(problem_.count, meeting_.size(), rank),
                  chunk_count(problem_.count, meeting_.size(), rank), rank, pattern);
    case Collective::kBroadcast:
      if (rank == kRoot) fill(out_, 0, problem_.count, rank, pattern);
      return;
    case Collective::kMessage:
    case Collective::kBarrier:
      return;
  }
}

std::uint64_t Bench::count_wrong() const {
  const int rank = meeting_.rank();
  const int size = meeting_.size();
  const std::size_t count = problem_.count;
  const Pattern pattern{problem_.type, problem_.op, size - problem_.servers, iteration_};
  switch (problem_.collective) {
    case Collective::kAllReduce:
      return count_wrong_reductions(out_, 0, count, 0, pattern);
    case Collective::kPushPull:
      return is_server() ? 0 : count_wrong_reductions(out_, 0, count, problem_.servers, pattern);
    case Collective::kReduceScatter:
      return count_wrong_reductions(out_, chunk_begin(count, size, rank),
                                    chunk_count(count, size, rank), 0, pattern);
    case Collective::kReduce:
      return rank == kRoot ? count_wrong_reductions(out_, 0, count, 0, pattern) : 0;
    case Collective::kScan:
      return count_wrong_reductions(out_, 0, count, 0, rank + 1, pattern);
    case Collective::kExclusiveScan:
      return rank == 0 ? 0 : count_wrong_reductions(out_, 0, count, 0, rank, pattern);
    case Collective::kAllGather:
      return count_wrong_chunks(pattern);
    case Collective::kGather:
      return rank == kRoot ? count_wrong_chunks(pattern) : 0;
    case Collective::kScatter:
      return count_wrong_copies(out_, chunk_begin(count, size, rank),
                                chunk_count(count, size, rank), kRoot, pattern);
    case Collective::kAllToAll:
      return count_wrong_shares(pattern);
    case Collective::kBroadcast:
      return count_wrong_copies(out_, 0, count, kRoot, pattern);
    case Collective::kMessage:
    case Collective::kBarrier:
      return 0;
  }
  return 0;
}

// Of a gather: every owner's chunk in its place.
std::uint64_t Bench::count_wrong_chunks(const Pattern& pattern) const {
  std::uint64_t wrong = 0;
  for (int owner = 0; owner < meeting_.size(); ++owner) {
    const std::size_t first = chunk_begin(problem_.count, meeting_.size(), owner);
    wrong +=
        count_wrong_copies(out_ + first * element_bytes(problem_.type), first,
                           chunk_count(problem_.count, meeting_.size(), owner), owner, pattern);
  }
  return wrong;
}

// Of an all-to-all: from every rank the share that was for this one.
std::uint64_t Bench::count_wrong_shares(const Pattern& pattern) const {
  const std::size_t share = problem_.count / static_cast<std::size_t>(meeting_.size());
  std::uint64_t wrong = 0;
  for (int giver = 0; giver < meeting_.size(); ++giver) {
    const auto place = share * static_cast<std::size_t>(giver) * element_bytes(problem_.type);
    wrong += count_wrong_copies(out_ + place, share * static_cast<std::size_t>(meeting_.rank()),
                                share, giver, pattern);
  }
  return wrong;
}

// A barrier's result is that nobody leaves before everybody has come. In each turn another rank is
// late.
std::uint64_t Bench::count_wrong_barriers(Library& library) {
  if (problem_.collective != Collective::kBarrier) return 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t turn = 1; turn <= kBarrierChecks; ++turn) {
    const auto late_until = Clock::now() + kLateness;
    const bool is_late = turn % static_cast<std::uint64_t>(meeting_.size()) ==
                         static_cast<std::uint64_t>(meeting_.rank());
    while (is_late && Clock::now() < late_until) {
    }
    const std::uint64_t sequence =
        std::uint64_t{iteration_} * kBarrierChecks + turn;  // grows from library to library
    meeting_.come(sequence);
    library.run(problem_, nullptr, nullptr);
    wrong += meeting_.ranks_behind(sequence);
  }
  meeting_.wait();
  return wrong;
}

}  // namespace kolo::bench
