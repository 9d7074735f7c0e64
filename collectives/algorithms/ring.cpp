// Ring all-reduce: reduce-scatter, then all-gather, n - 1 steps each.
//
// Idea. The ranks form a circle; each sends to its right and receives from its left. The data is
// cut into n chunks. In the reduce-scatter a partial sum of every chunk travels around the circle,
// and each rank adds its own share. After n - 1 steps rank r holds the complete chunk r. In the
// all-gather the complete chunks travel around the circle once more.
//
// Cost. Each rank sends 2 (n - 1) / n of the data, the minimum of any algorithm. The latency grows
// with n, so a tree is better for small data. Travelling partial sums are not stored: a rank
// reduces the received segment directly into the slot of the next send (receive-reduce-send). Only
// its own complete chunk is written (receive-reduce-copy-send).
//
// With three or more ranks every step runs for two slices, so that a rank works on one segment
// while the other travels. Two ranks are each other's left and right. There the steps are staged
// one turn apart, which hides the latency without a gap between turns. If channels can answer, the
// peer overwrites the sent segment in place with the sum. That saves a slot and a pass through the
// caches; the bytes sent and the result are the same.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009; the fused steps are those of NCCL.
#include "collectives/algorithms/ring.h"

namespace kolo::inline v0 {
namespace {

constexpr int wrap(int rank, int size) { return ((rank % size) + size) % size; }

Operand input(int chunk) { return {Place::kInput, static_cast<std::uint16_t>(chunk)}; }
Operand output(int chunk) { return {Place::kOutput, static_cast<std::uint16_t>(chunk)}; }

// Writes the steps of one rank of a ring.
class RingWriter {
 public:
  RingWriter(Schedule& schedule, int slices) : schedule_(schedule) {
    schedule_.slices = slices;
    left_ = static_cast<std::int16_t>(wrap(schedule.rank - 1, schedule.size));
    right_ = static_cast<std::int16_t>(wrap(schedule.rank + 1, schedule.size));
  }

  // The chunk of the rank that is `k` places to the left.
  int chunk(int k) const { return wrap(schedule_.rank - k, schedule_.size); }

  // Adds the step once per slice. A step that does not send or receive leaves kNobody there.
  Step& add(StepKind kind, int chunk, int stage, Operand in, Operand out, bool is_final = false) {
    const bool sends = kind == StepKind::kSend || kind == StepKind::kReceiveSend ||
                       kind == StepKind::kReceiveReduceSend ||
                       kind == StepKind::kReceiveReduceCopySend ||
                       kind == StepKind::kSendForAnswer || kind == StepKind::kReceiveAnswer;
    const bool receives = kind != StepKind::kSend && kind != StepKind::kSendForAnswer &&
                          kind != StepKind::kReceiveAnswer && kind != StepKind::kCopy;
    for (int slice = 0; slice < schedule_.slices; ++slice) {
      Step step;
      step.kind = kind;
      step.stage = static_cast<std::uint8_t>(stage);
      step.slice = static_cast<std::uint8_t>(slice);
      step.is_final = is_final;
      step.chunk = static_cast<std::uint16_t>(chunk);
      if (sends) step.to = right_;
      if (receives) step.from = left_;
      step.in = in;
      step.out = out;
      schedule_.steps.push_back(step);
    }
    return schedule_.steps.back();
  }

 private:
  Schedule& schedule_;
  std::int16_t left_;
  std::int16_t right_;
};

Schedule begin(const ScheduleRequest& request, Collective collective) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.algorithm = "ring";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.chunks = request.size;
  schedule.input = schedule.output = {0, request.size};
  schedule.contributions = request.size;
  return schedule;
}

// A single rank copies its input to its output.
void copy_only(Schedule& schedule) {
  RingWriter(schedule, 1).add(StepKind::kCopy, 0, 0, input(0), output(0), true);
}

void two_ranks_all_reduce(Schedule& schedule, bool can_answer) {
  RingWriter ring(schedule, 1);
  const int mine = ring.chunk(0);
  const int theirs = ring.chunk(1);
  schedule.leaves_from_memory = !can_answer;
  if (can_answer) {
    ring.add(StepKind::kSendForAnswer, theirs, 0, input(theirs), {});
    ring.add(StepKind::kReceiveReduceAnswer, mine, 1, input(mine), output(mine), true);
    ring.add(StepKind::kReceiveAnswer, theirs, 2, {}, output(theirs));
  } else {
    ring.add(StepKind::kSend, theirs, 0, input(theirs), {});
    ring.add(StepKind::kReceiveReduceCopySend, mine, 1, input(mine), output(mine), true);
    ring.add(StepKind::kReceive, theirs, 2, {}, output(theirs));
  }
}

}  // namespace

Schedule ring_all_reduce(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kAllReduce);
  const int n = request.size;
  if (n == 1) {
    copy_only(schedule);
    return schedule;
  }
  if (n == 2) {
    two_ranks_all_reduce(schedule, request.can_answer);
    return schedule;
  }
  RingWriter ring(schedule, 2);
  ring.add(StepKind::kSend, ring.chunk(1), 0, input(ring.chunk(1)), {});
  for (int k = 2; k < n; ++k) {
    ring.add(StepKind::kReceiveReduceSend, ring.chunk(k), 0, input(ring.chunk(k)), {});
  }
  ring.add(StepKind::kReceiveReduceCopySend, ring.chunk(0), 0, input(ring.chunk(0)),
           output(ring.chunk(0)), true);
  for (int k = 1; k < n - 1; ++k) {
    ring.add(StepKind::kReceiveSend, ring.chunk(k), 0, {}, output(ring.chunk(k)));
  }
  ring.add(StepKind::kReceive, ring.chunk(n - 1), 0, {}, output(ring.chunk(n - 1)));
  return schedule;
}

Schedule ring_reduce_scatter(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kReduceScatter);
  schedule.output = {request.rank, 1};
  const int n = request.size;
  if (n == 1) {
    copy_only(schedule);
    return schedule;
  }
  RingWriter ring(schedule, n == 2 ? 1 : 2);
  schedule.leaves_from_memory = n == 2;
  ring.add(StepKind::kSend, ring.chunk(1), 0, input(ring.chunk(1)), {});
  for (int k = 2; k < n; ++k) {
    ring.add(StepKind::kReceiveReduceSend, ring.chunk(k), 0, input(ring.chunk(k)), {});
  }
  ring.add(StepKind::kReceiveReduce, ring.chunk(0), n == 2 ? 1 : 0, input(ring.chunk(0)),
           output(ring.chunk(0)), true);
  return schedule;
}

Schedule ring_all_gather(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kAllGather);
  schedule.leaves_from_memory = true;
  schedule.input = {request.rank, 1};
  const int n = request.size;
  if (n == 1) {
    copy_only(schedule);
    return schedule;
  }
  RingWriter ring(schedule, n == 2 ? 1 : 2);
  const int mine = ring.chunk(0);
  ring.add(StepKind::kSend, mine, 0, input(mine), {});
  ring.add(StepKind::kCopy, mine, 0, input(mine), output(mine));
  for (int k = 1; k < n - 1; ++k) {
    ring.add(StepKind::kReceiveSend, ring.chunk(k), 0, {}, output(ring.chunk(k)));
  }
  ring.add(StepKind::kReceive, ring.chunk(n - 1), n == 2 ? 1 : 0, {}, output(ring.chunk(n - 1)));
  return schedule;
}

std::size_t ring_reduce_scatter_sent(int rank, int size, std::size_t count) {
  return size == 1 ? 0 : count - chunk_count(count, size, rank);
}

std::size_t ring_all_gather_sent(int rank, int size, std::size_t count) {
  return size == 1 ? 0 : count - chunk_count(count, size, wrap(rank + 1, size));
}

std::size_t ring_all_reduce_sent(int rank, int size, std::size_t count) {
  return ring_reduce_scatter_sent(rank, size, count) + ring_all_gather_sent(rank, size, count);
}

}  // namespace kolo::inline v0
