// Chain: rank r receives from rank r - 1, adds its own data, and sends the result to rank r + 1.
//
// Idea. A scan is exactly that: the partial sum that passes a rank is its result. The data streams
// through the chain segment by segment, so all ranks work at the same time once the chain is full.
//
// A broadcast follows the chain that begins at the root and ends at the rank before it. A reduce
// follows the same chain backwards, from its end to the root. An *ordered* reduce runs from rank 0
// to the last rank, as a scan does. So the root adds its share in its place, and the last rank
// sends the result to the root. The root receives at a later stage, one turn for each rank between,
// so that segments fill the circle.
//
// Cost. n - 1 hops for the first segment. Every rank sends the data once: the best bandwidth, but a
// latency that grows with n. Scans and ordered reduces combine in the order of the ranks.
//
// Source: Hillis and Steele describe uses of scans in "Data parallel algorithms", 1986. The
// pipelines are the linear scan, and the pipeline of broadcast and reduce, of Open MPI's coll/base.
#include "collectives/algorithms/chain.h"

#include <algorithm>

#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

Schedule begin(const ScheduleRequest& request, Collective collective) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.algorithm = "chain";
  schedule.rank = request.rank;
  schedule.size = request.size;
  schedule.input = schedule.output = {0, 1};
  return schedule;
}

constexpr int kLatestStage = 255;

// Position of a rank in the chain that begins at the root.
class Link {
 public:
  explicit Link(const ScheduleRequest& request)
      : rank_(request.rank), size_(request.size), root_(request.root) {}

  bool is_first() const { return rank_ == root_; }
  bool is_last() const { return after() == root_; }
  int before() const { return (rank_ - 1 + size_) % size_; }
  int after() const { return (rank_ + 1) % size_; }

 private:
  int rank_;
  int size_;
  int root_;
};

}  // namespace

Schedule chain_scan(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kScan);
  schedule.leaves_from_memory = request.size <= 2;
  const int before = request.rank - 1;
  const int after = request.rank + 1;
  const bool is_last = after == request.size;
  if (request.rank == 0) {
    if (!is_last) schedule.steps.push_back(send(after, input(0)));
    schedule.steps.push_back(copy(input(0), output(0)));
  } else if (is_last) {
    schedule.steps.push_back(in_last(receive_reduce(before, input(0), output(0))));
  } else {
    schedule.steps.push_back(in_last(receive_reduce_copy_send(before, after, input(0), output(0))));
  }
  return schedule;
}

Schedule chain_exclusive_scan(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kExclusiveScan);
  schedule.leaves_from_memory = request.size <= 2;
  const int before = request.rank - 1;
  const int after = request.rank + 1;
  const bool is_last = after == request.size;
  if (request.rank == 0) {
    schedule.output = {};
    if (!is_last) schedule.steps.push_back(send(after, input(0)));
    return schedule;
  }
  if (is_last) {
    schedule.steps.push_back(receive(before, output(0)));
    return schedule;
  }
  // Input and output may be the same memory. So the received segment waits in scratch until the sum
  // with this rank's input has been sent.
  schedule.steps.push_back(receive(before, scratch(0)));
  schedule.steps.push_back(in_last(reduce_send(after, input(0), scratch(0))));
  schedule.steps.push_back(copy(scratch(0), output(0)));
  return schedule;
}

Schedule chain_broadcast(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kBroadcast);
  schedule.leaves_from_memory = true;
  const Link link(request);
  if (!link.is_first()) schedule.input = {};
  if (link.is_first() && !link.is_last()) {
    schedule.steps.push_back(send(link.after(), output(0)));
  } else if (!link.is_first()) {
    schedule.steps.push_back(link.is_last() ? receive(link.before(), output(0))
                                            : receive_send(link.before(), link.after(), output(0)));
  }
  return schedule;
}

Schedule chain_reduce(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kReduce);
  schedule.leaves_from_memory = request.size <= 2;
  schedule.contributions = request.size;
  const Link link(request);
  const Operand mine = input(0);
  if (!link.is_first()) {
    schedule.output = {};
    schedule.steps.push_back(link.is_last()
                                 ? send(link.before(), mine)
                                 : receive_reduce_send(link.after(), link.before(), mine));
  } else {
    schedule.steps.push_back(final(link.is_last() ? copy(mine, output(0))
                                                  : receive_reduce(link.after(), mine, output(0))));
  }
  return schedule;
}

Schedule ordered_chain_reduce(const ScheduleRequest& request) {
  Schedule schedule = begin(request, Collective::kReduce);
  schedule.algorithm = "ordered_chain";
  schedule.contributions = request.size;
  const int before = request.rank - 1;
  const int last = request.size - 1;
  const bool is_root = request.rank == request.root;
  const Operand mine = input(0);
  if (!is_root) schedule.output = {};
  if (request.rank == last) {
    const Step take = !is_root    ? receive_reduce_send(before, request.root, mine)
                      : last == 0 ? copy(mine, output(0))
                                  : receive_reduce(before, mine, output(0));
    schedule.steps.push_back(final(in_last_if(last > 0, take)));
    return schedule;
  }
  const int after = request.rank + 1;
  schedule.steps.push_back(request.rank == 0 ? send(after, mine)
                                             : in_last(receive_reduce_send(before, after, mine)));
  if (is_root) {
    const int behind = std::min(last - request.rank, kLatestStage);
    schedule.steps.push_back(at_stage(behind, receive(last, output(0))));
  }
  return schedule;
}

std::size_t chain_broadcast_sent(int rank, int size, int root, std::size_t count) {
  return (rank + 1) % size == root ? 0 : count;
}

std::size_t chain_reduce_sent(int rank, int root, std::size_t count) {
  return rank == root ? 0 : count;
}

std::size_t ordered_chain_reduce_sent(int rank, int size, int root, std::size_t count) {
  return rank == size - 1 && rank == root ? 0 : count;
}

std::size_t chain_scan_sent(int rank, int size, std::size_t count) {
  return rank + 1 < size ? count : 0;
}

}  // namespace kolo::inline v0
