// Recursive halving and doubling, after Rabenseifner: all-reduce with the fewest bytes in 2
// ceil(log2(n)) hops.
//
// Idea. *Doubling* is an all-gather. Before round k a rank holds 2^k chunks, its own among them. It
// sends all of them to one rank and receives as many from another, so it then holds twice as many.
// If n is a power of two, both ranks are the partner whose rank differs in bit k. For any other n,
// a rank sends to the rank 2^k places to its left and receives from the rank 2^k places to its
// right. It then holds the chunks from its own on, around the circle; the last round moves only the
// missing ones. So there are no special ranks, and no rank is idle.
//
// *Halving* is a reduce-scatter: doubling in reverse. A chunk that travelled away from its owner
// returns as a partial sum, and every rank on its way adds its own share. In each round a rank
// sends away half of its remaining partial sums. At the end it holds its own chunk, complete. So
// every element is reduced in one place, and copied from there.
//
// The sends and receives of a round alternate, so that a channel holds at most one or two segments.
// Where halving changes to doubling, one step completes a rank's own sum and sends it back to the
// rank of the last share.
//
// Cost. Each half sends (n - 1) / n of the data, as a ring does, but in ceil(log2(n)) hops instead
// of n - 1. A ring fuses all reductions with sends and needs no scratch; this does not.
//
// Source: Rabenseifner, "Optimization of collective reduction operations", 2004, for powers of two;
// the circle is Bruck et al., "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", 1997, and in reverse Traeff, "Optimal, non-pipelined reduce-scatter and
// allreduce algorithms", 2023.
#include "collectives/algorithms/halving_doubling.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// A range of chunks that may wrap around the circle.
struct Run {
  int first;
  int length;
};

// One round of doubling. `gives` and `gets` have the same length.
struct Round {
  int to;
  int from;
  Run gives;
  Run gets;
};

std::vector<Round> rounds_of(int rank, int size) {
  std::vector<Round> rounds;
  const bool is_power = std::has_single_bit(static_cast<unsigned>(size));
  for (int held = 1; held < size; held *= 2) {
    if (is_power) {
      const int partner = rank ^ held;
      const auto block = [held](int member) { return Run{member / held * held, held}; };
      rounds.push_back({partner, partner, block(rank), block(partner)});
    } else {
      const int moved = std::min(held, size - held);
      const int right = (rank + held) % size;
      rounds.push_back({(rank - held + size) % size, right, {rank, moved}, {right, moved}});
    }
  }
  return rounds;
}

class Writer {
 public:
  Writer(const ScheduleRequest& request, Collective collective, const char* algorithm)
      : mine_(request.rank), rounds_(rounds_of(request.rank, request.size)) {
    schedule_.collective = collective;
    schedule_.algorithm = algorithm;
    schedule_.rank = request.rank;
    schedule_.size = request.size;
    schedule_.chunks = request.size;
    schedule_.input = schedule_.output = {0, request.size};
    schedule_.contributions = request.size;
    partial_.reserve(static_cast<std::size_t>(request.size));
    for (int chunk = 0; chunk < request.size; ++chunk) partial_.push_back(input(chunk));
  }

  Schedule& schedule() { return schedule_; }

  // A single rank copies its input to its output.
  bool is_alone() const { return rounds_.empty(); }
  void keep_own(bool is_final) { add(final_if(is_final, copy(input(mine_), output(mine_)))); }

  // The reduce-scatter without its last step. It has two slices: a rank works on one segment while
  // the other travels.
  void halve() {
    schedule_.slices = 2;
    for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
      for (int k = 0; k < round->gives.length; ++k) {
        add(send(round->from, partial(chunk_of(round->gets, k))));
        const int chunk = chunk_of(round->gives, k);
        if (round + 1 == rounds_.rend()) continue;
        add(receive_reduce(round->to, partial(chunk), scratch(chunk)));
        partial(chunk) = scratch(chunk);
      }
    }
  }

  // The last step of halving, which completes this rank's chunk. With `goes_on` it also sends the
  // chunk back to the peer of that step.
  void complete(bool goes_on) {
    const int peer = rounds_.front().to;
    const Operand sum = partial(mine_);
    add(final(goes_on ? receive_reduce_copy_send(peer, peer, sum, output(mine_))
                      : receive_reduce(peer, sum, output(mine_))));
  }

  // The all-gather of the chunks in the output. With `is_begun` the first send has been done.
  // Otherwise a round of a single chunk takes a turn, which hides its latency. Rounds of more
  // chunks would need more credit than there may be. Channels that also carry segments of halving
  // need all rounds in one turn.
  void double_up(bool is_begun) {
    int stage = 0;
    for (const Round& round : rounds_) {
      const int next = !is_begun && round.gives.length == 1 ? stage + 1 : stage;
      for (int k = 0; k < round.gives.length; ++k) {
        const Operand given = output(chunk_of(round.gives, k));
        const Operand got = output(chunk_of(round.gets, k));
        const bool is_sent = is_begun && &round == &rounds_.front();
        if (!is_sent) add(at_stage(stage, send(round.to, given)));
        add(at_stage(next, receive(round.from, got)));
      }
      stage = next;
    }
  }

 private:
  int chunk_of(const Run& run, int k) const { return (run.first + k) % schedule_.size; }
  Operand& partial(int chunk) { return partial_[static_cast<std::size_t>(chunk)]; }

  void add(Step step) {
    for (int slice = 0; slice < schedule_.slices; ++slice) {
      step.slice = static_cast<std::uint8_t>(slice);
      schedule_.steps.push_back(step);
    }
  }

  int mine_;
  std::vector<Round> rounds_;
  std::vector<Operand> partial_;  // by chunk: the place of this rank's part of the sum
  Schedule schedule_;
};

std::size_t elements_of(const Run& run, int size, std::size_t count) {
  const int end = run.first + run.length;
  const std::size_t begin = chunk_begin(count, size, run.first);
  if (end <= size) return chunk_begin(count, size, end) - begin;
  return count - begin + chunk_begin(count, size, end - size);
}

}  // namespace

Schedule recursive_halving_reduce_scatter(const ScheduleRequest& request) {
  Writer writer(request, Collective::kReduceScatter, "recursive_halving");
  writer.schedule().output = {request.rank, 1};
  if (writer.is_alone()) {
    writer.keep_own(true);
    return std::move(writer.schedule());
  }
  writer.halve();
  writer.complete(false);
  return std::move(writer.schedule());
}

Schedule recursive_doubling_all_gather(const ScheduleRequest& request) {
  Writer writer(request, Collective::kAllGather, "recursive_doubling");
  writer.schedule().leaves_from_memory = true;
  writer.schedule().input = {request.rank, 1};
  writer.keep_own(false);
  writer.double_up(false);
  return std::move(writer.schedule());
}

Schedule halving_doubling_all_reduce(const ScheduleRequest& request) {
  Writer writer(request, Collective::kAllReduce, "halving_doubling");
  if (writer.is_alone()) {
    writer.keep_own(true);
    return std::move(writer.schedule());
  }
  writer.halve();
  writer.complete(true);
  writer.double_up(true);
  return std::move(writer.schedule());
}

std::size_t recursive_halving_reduce_scatter_sent(int rank, int size, std::size_t count) {
  std::size_t sent = 0;
  for (const Round& round : rounds_of(rank, size)) sent += elements_of(round.gets, size, count);
  return sent;
}

std::size_t recursive_doubling_all_gather_sent(int rank, int size, std::size_t count) {
  std::size_t sent = 0;
  for (const Round& round : rounds_of(rank, size)) sent += elements_of(round.gives, size, count);
  return sent;
}

std::size_t halving_doubling_all_reduce_sent(int rank, int size, std::size_t count) {
  return recursive_halving_reduce_scatter_sent(rank, size, count) +
         recursive_doubling_all_gather_sent(rank, size, count);
}

}  // namespace kolo::inline v0
