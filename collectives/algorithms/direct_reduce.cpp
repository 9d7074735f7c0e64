// Direct reductions and all-gather: every rank talks to every other at once, and forwards nothing.
//
// Idea. *One-shot* all-reduce: every rank sends all its data to all others, and reduces what it
// receives. *Two-shot* all-reduce: every rank sends chunk p to rank p, which reduces it (a direct
// reduce-scatter) and sends the result to all (a direct all-gather).
//
// All ranks reduce in the order of the ranks, ((0 op 1) op 2) op ... So all ranks have the same
// bits with one shot, and the same with two. A rank sends to the ranks after it first, so that no
// receiver is flooded.
//
// If channels can answer, two-shot runs as a parameter server in every rank. The owner of a chunk
// overwrites each received segment in place with the result, and the sender reads it back. Each
// cache line moves twice, and no second slot is filled. (Four ranks on two cores, 256 KiB: 217 us
// instead of 268; a ring takes 322.)
//
// Cost. One-shot: one hop, and (n - 1) times the data from every rank. It has the lowest latency,
// for very short data and few ranks. Two-shot: two hops, and 2 (n - 1) / n of the data, as a ring,
// but n - 1 messages at once. It suits links that can all be busy together, as in shared memory or
// behind one switch. A receive is staged one turn behind its send, so segments stream.
//
// Source: the names one-shot and two-shot are those of TensorRT-LLM and PyTorch's symmetric memory.
// MPICH's "pairwise" reduce-scatter (Thakur et al. 2005) sends the same data, in rounds.
#include "collectives/algorithms/direct_reduce.h"

#include <numeric>
#include <utility>

#include "collectives/algorithms/parameter_server.h"
#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

class Writer {
 public:
  Writer(const ScheduleRequest& request, Collective collective, const char* algorithm, int chunks)
      : mine_(request.rank), size_(request.size) {
    schedule_.collective = collective;
    schedule_.algorithm = algorithm;
    schedule_.rank = mine_;
    schedule_.size = size_;
    schedule_.chunks = chunks;
    schedule_.input = schedule_.output = {0, chunks};
    schedule_.contributions = size_;
  }

  Schedule& schedule() { return schedule_; }
  int after(int k) const { return (mine_ + k) % size_; }
  void add(int stage, Step step) { schedule_.steps.push_back(at_stage(stage, step)); }

  // Reduces `mine` and all others' chunk of the same number into `out`, in the order of the ranks.
  void reduce_in_order(int stage, Operand mine, Operand out) {
    const Operand partial = scratch(mine.chunk);
    if (size_ == 1) return add(stage, final(copy(mine, out)));
    Operand so_far = mine;
    if (mine_ > 0) so_far = reduce_before(stage, mine, out);
    for (int rank = mine_ + 1; rank < size_; ++rank) {
      const bool is_last = rank + 1 == size_;
      add(stage, final_if(is_last, receive_reduce(rank, so_far, is_last ? out : partial)));
      so_far = partial;
    }
  }

  void scatter(int stage) {
    for (int k = 1; k < size_; ++k) add(stage, send(after(k), input(after(k))));
  }

  void gather(int stage, Operand mine) {
    for (int k = 1; k < size_; ++k) add(stage, send(after(k), mine));
    for (int k = size_ - 1; k > 0; --k) add(stage + 1, receive(after(k), output(after(k))));
  }

 private:
  // Combines the chunks of the lower ranks, then this rank's own. For the last rank that is the
  // final result.
  Operand reduce_before(int stage, Operand mine, Operand out) {
    const Operand partial = scratch(mine.chunk);
    add(stage, receive(0, partial));
    for (int rank = 1; rank < mine_; ++rank) add(stage, receive_reduce(rank, partial, partial));
    if (mine_ + 1 < size_) {
      add(stage, in_last(reduce(mine, partial)));
    } else {
      add(stage, copy(mine, out));
      add(stage, final(reduce(partial, out)));
    }
    return partial;
  }

  int mine_;
  int size_;
  Schedule schedule_;
};

}  // namespace

Schedule one_shot_all_reduce(const ScheduleRequest& request) {
  Writer writer(request, Collective::kAllReduce, "one_shot", 1);
  for (int k = 1; k < request.size; ++k) writer.add(0, copied(send(writer.after(k), input(0))));
  writer.reduce_in_order(1, input(0), output(0));
  return std::move(writer.schedule());
}

namespace {

Schedule answering_two_shot(const ScheduleRequest& request) {
  ParameterServerRequest servers;
  servers.rank = request.rank;
  servers.size = request.size;
  servers.servers.resize(static_cast<std::size_t>(request.size));
  std::iota(servers.servers.begin(), servers.servers.end(), 0);
  servers.servers_work = true;
  servers.has_update = false;
  servers.can_answer = true;
  servers.in_rank_order = true;
  Schedule schedule = parameter_server_push_pull(servers);
  schedule.collective = Collective::kAllReduce;
  schedule.algorithm = "two_shot";
  return schedule;
}

}  // namespace

Schedule two_shot_all_reduce(const ScheduleRequest& request) {
  if (request.can_answer) return answering_two_shot(request);
  Writer writer(request, Collective::kAllReduce, "two_shot", request.size);
  writer.scatter(0);
  writer.reduce_in_order(1, input(request.rank), output(request.rank));
  writer.gather(1, output(request.rank));
  return std::move(writer.schedule());
}

Schedule direct_reduce_scatter(const ScheduleRequest& request) {
  Writer writer(request, Collective::kReduceScatter, "direct", request.size);
  writer.schedule().output = {request.rank, 1};
  writer.scatter(0);
  writer.reduce_in_order(1, input(request.rank), output(request.rank));
  return std::move(writer.schedule());
}

Schedule direct_all_gather(const ScheduleRequest& request) {
  Writer writer(request, Collective::kAllGather, "direct", request.size);
  writer.schedule().leaves_from_memory = true;
  writer.schedule().input = {request.rank, 1};
  writer.gather(0, input(request.rank));
  writer.add(0, copy(input(request.rank), output(request.rank)));
  return std::move(writer.schedule());
}

std::size_t one_shot_all_reduce_sent(int, int size, std::size_t count) {
  return static_cast<std::size_t>(size - 1) * count;
}

std::size_t direct_reduce_scatter_sent(int rank, int size, std::size_t count) {
  return count - chunk_count(count, size, rank);
}

std::size_t direct_all_gather_sent(int rank, int size, std::size_t count) {
  return static_cast<std::size_t>(size - 1) * chunk_count(count, size, rank);
}

std::size_t two_shot_all_reduce_sent(int rank, int size, std::size_t count) {
  return direct_reduce_scatter_sent(rank, size, count) + direct_all_gather_sent(rank, size, count);
}

}  // namespace kolo::inline v0
