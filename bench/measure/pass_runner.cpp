#include "bench/measure/pass_runner.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>

#include "bench/measure/buffer.h"
#include "bench/measure/cores.h"

namespace kolo::bench {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr std::size_t kFewestPerTurn = 2;
constexpr std::size_t kMostPerTurn = 500;
constexpr std::size_t kLookEvery = 32;  // iterations
constexpr double kLongest = 3;          // times the requested time: other programs have the cores
constexpr std::uint64_t kBarrierChecks = 20;
constexpr std::chrono::microseconds kLateness{20};  // delay of one rank, while a barrier is checked

}  // namespace

PassResult Library::run_pass(const PassRequest&, const Buffer&, const Buffer&) {
  throw std::logic_error(name() + " runs no passes by itself");
}

PassRunner::PassRunner(RankGroup& group, std::byte* data, std::byte* input)
    : group_(group), data_(data), input_(input) {}

PassResult PassRunner::run_pass(Library& library, const PassRequest& turn) {
  std::optional<Unbound> unbound;  // on bound ranks its threads wait longer
  if (library.has_threads()) unbound.emplace();
  turn_ = turn;
  wrong_ = 0;
  place_buffers(library);
  PassResult result;
  pass(library, warm_up(library, result), result);
  if (turn_.checks_waiting) wrong_ += count_wrong_barriers(library);
  result.wrong = group_.sum(wrong_);
  result.iteration = turn_.iteration;
  return result;
}

std::size_t PassRunner::chunk_begin_bytes() const {
  const Problem& problem = turn_.problem;
  return chunk_begin(problem.count, group_.size(), group_.rank()) * element_bytes(problem.type);
}

void PassRunner::place_buffers(const Library& library) {
  const Problem& problem = turn_.problem;
  const Collective collective = problem.collective;
  in_ = problem.is_in_place ? data_ : input_;
  out_ = data_;
  const bool gets_chunk = collective == Collective::kReduceScatter ||
                          collective == Collective::kScatter ||
                          (collective == Collective::kPush && problem.servers == 0);
  const bool gives_chunk = collective == Collective::kAllGather ||
                           collective == Collective::kGather ||
                           (collective == Collective::kPull && problem.servers == 0);
  if (problem.is_in_place && gets_chunk) out_ += chunk_begin_bytes();
  if (problem.is_in_place && gives_chunk) in_ += chunk_begin_bytes();
  result_ = static_cast<const std::byte*>(library.result(problem, in_, out_));
}

// Returns the number of counted iterations: the requested one, or an estimate from the warm-up.
std::size_t PassRunner::warm_up(Library& library, PassResult& result) {
  double quickest = std::numeric_limits<double>::max();
  const int least = turn_.iterations == 0 ? 1 : 0;
  const int count = std::max(turn_.warmup, least);
  for (int i = 0; i < count; ++i) {
    const Timed timed = iterate(library);
    quickest = std::min(quickest, timed.whole_us);
    if (i == 0) result.first_us = group_.largest(timed.call_us);
  }
  if (turn_.iterations > 0) return std::min(turn_.iterations, kMostIterations);
  const double fitting = turn_.seconds * 1e6 / group_.largest(quickest);
  return std::clamp(static_cast<std::size_t>(fitting), kFewestPerTurn, kMostPerTurn);
}

void PassRunner::pass(Library& library, std::size_t iterations, PassResult& result) {
  std::vector<double> times;
  times.reserve(iterations);
  const auto begin = Clock::now();
  const auto is_over = [&] {
    const std::chrono::duration<double> so_far = Clock::now() - begin;
    return group_.largest(so_far.count()) > kLongest * turn_.seconds;
  };
  for (std::size_t i = 0; i < iterations; ++i) {
    if (turn_.seconds > 0 && i > 0 && i % kLookEvery == 0 && is_over()) break;
    times.push_back(iterate(library).call_us);
  }
  result.times_us = group_.largest(times);
  if (turn_.warmup == 0 && turn_.iterations > 0) result.first_us = result.times_us.front();
}

PassRunner::Timed PassRunner::iterate(Library& library) {
  const auto begin = Clock::now();
  ++turn_.iteration;
  give();
  library.bring(turn_.problem);
  group_.wait();
  const auto before = Clock::now();
  library.run(turn_.problem, has_input() ? in_ : nullptr, has_output() ? out_ : nullptr);
  const auto after = Clock::now();
  // Otherwise the first finished rank would check its result on a core that another rank still
  // needs.
  group_.wait();
  library.fetch(turn_.problem);
  if (turn_.is_checked) wrong_ += count_wrong();
  return {Microseconds(after - before).count(), Microseconds(Clock::now() - begin).count()};
}

bool PassRunner::has_input() const {
  if (turn_.problem.collective == Collective::kPull) return serves();
  return !has_servers(turn_.problem.collective) || !is_server();
}

bool PassRunner::has_output() const {
  if (turn_.problem.collective == Collective::kPush) return serves();
  return !has_servers(turn_.problem.collective) || !is_server();
}

void PassRunner::give() {
  const int rank = group_.rank();
  const int workers = group_.size() - turn_.problem.servers;
  const Pattern pattern{turn_.problem.type, turn_.problem.op, workers, turn_.iteration};
  switch (turn_.problem.collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
    case Collective::kPushPull:
    case Collective::kPush:
    case Collective::kReduce:
    case Collective::kScan:
    case Collective::kExclusiveScan:
    case Collective::kAllToAll:
      if (!is_server()) fill(in_, 0, turn_.problem.count, rank, pattern);
      return;
    case Collective::kScatter:
      if (rank == kRoot) fill(in_, 0, turn_.problem.count, rank, pattern);
      return;
    case Collective::kAllGather:
    case Collective::kGather:
      return fill(in_, chunk_begin(turn_.problem.count, group_.size(), rank),
                  chunk_count(turn_.problem.count, group_.size(), rank), rank, pattern);
    case Collective::kPull:
      if (serves())
        fill(in_, chunk_begin(turn_.problem.count, servers(), rank),
             chunk_count(turn_.problem.count, servers(), rank), rank, pattern);
      return;
    case Collective::kBroadcast:
      if (rank == kRoot) fill(out_, 0, turn_.problem.count, rank, pattern);
      return;
    case Collective::kMessage:
    case Collective::kBarrier:
      return;
  }
}

std::uint64_t PassRunner::count_wrong() const {
  const int rank = group_.rank();
  const int size = group_.size();
  const std::size_t count = turn_.problem.count;
  const Pattern pattern{turn_.problem.type, turn_.problem.op, size - turn_.problem.servers,
                        turn_.iteration};
  switch (turn_.problem.collective) {
    case Collective::kAllReduce:
      return count_wrong_reductions(result_, 0, count, 0, pattern);
    case Collective::kPushPull:
      return is_server()
                 ? 0
                 : count_wrong_reductions(result_, 0, count, turn_.problem.servers, pattern);
    case Collective::kPush:
      return serves() ? count_wrong_reductions(result_, chunk_begin(count, servers(), rank),
                                               chunk_count(count, servers(), rank),
                                               turn_.problem.servers, pattern)
                      : 0;
    case Collective::kPull:
      return is_server() ? 0 : count_wrong_chunks(servers(), pattern);
    case Collective::kReduceScatter:
      return count_wrong_reductions(result_, chunk_begin(count, size, rank),
                                    chunk_count(count, size, rank), 0, pattern);
    case Collective::kReduce:
      return rank == kRoot ? count_wrong_reductions(result_, 0, count, 0, pattern) : 0;
    case Collective::kScan:
      return count_wrong_reductions(result_, 0, count, 0, rank + 1, pattern);
    case Collective::kExclusiveScan:
      return rank == 0 ? 0 : count_wrong_reductions(result_, 0, count, 0, rank, pattern);
    case Collective::kAllGather:
      return count_wrong_chunks(size, pattern);
    case Collective::kGather:
      return rank == kRoot ? count_wrong_chunks(size, pattern) : 0;
    case Collective::kScatter:
      return count_wrong_copies(result_, chunk_begin(count, size, rank),
                                chunk_count(count, size, rank), kRoot, pattern);
    case Collective::kAllToAll:
      return count_wrong_shares(pattern);
    case Collective::kBroadcast:
      return count_wrong_copies(result_, 0, count, kRoot, pattern);
    case Collective::kMessage:
    case Collective::kBarrier:
      return 0;
  }
  return 0;
}

// Checks a gather: every owner's chunk in its place.
std::uint64_t PassRunner::count_wrong_chunks(int owners, const Pattern& pattern) const {
  std::uint64_t wrong = 0;
  for (int owner = 0; owner < owners; ++owner) {
    const std::size_t first = chunk_begin(turn_.problem.count, owners, owner);
    wrong += count_wrong_copies(result_ + first * element_bytes(turn_.problem.type), first,
                                chunk_count(turn_.problem.count, owners, owner), owner, pattern);
  }
  return wrong;
}

// Checks an all-to-all: this rank's share from every rank.
std::uint64_t PassRunner::count_wrong_shares(const Pattern& pattern) const {
  const std::size_t share = turn_.problem.count / static_cast<std::size_t>(group_.size());
  std::uint64_t wrong = 0;
  for (int giver = 0; giver < group_.size(); ++giver) {
    const auto place = share * static_cast<std::size_t>(giver) * element_bytes(turn_.problem.type);
    wrong += count_wrong_copies(result_ + place, share * static_cast<std::size_t>(group_.rank()),
                                share, giver, pattern);
  }
  return wrong;
}

// Checks a barrier: no rank may leave before all have arrived. Each round has a different late
// rank.
std::uint64_t PassRunner::count_wrong_barriers(Library& library) {
  if (turn_.problem.collective != Collective::kBarrier) return 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t turn = 1; turn <= kBarrierChecks; ++turn) {
    const auto late_until = Clock::now() + kLateness;
    const bool is_late = turn % static_cast<std::uint64_t>(group_.size()) ==
                         static_cast<std::uint64_t>(group_.rank());
    while (is_late && Clock::now() < late_until) {
    }
    const std::uint64_t sequence =
        std::uint64_t{turn_.iteration} * kBarrierChecks + turn;  // increases over all libraries
    group_.come(sequence);
    library.run(turn_.problem, nullptr, nullptr);
    wrong += group_.ranks_behind(sequence);
  }
  group_.wait();
  return wrong;
}

}  // namespace kolo::bench
