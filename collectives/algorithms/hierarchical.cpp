// Hierarchical all-reduce: inside hosts, then across hosts, then inside hosts again.
//
// Words. *Lane* c consists of one rank of every host (lanes.h). Its ranks *own* chunk c of the
// data.
//
// Idea. Inside a host every rank sends each chunk to its owner there, which adds them up: the
// host's sum. Across hosts every lane all-reduces its chunk. Then every owner sends its result to
// all other ranks of its host. With hosts of different sizes there are as many lanes as the
// smallest host has ranks. A rank in no lane only sends its shares and receives the results.
//
// Cost, for m bytes on h hosts of k ranks each. A rank sends (k - 1) / k m twice inside its host,
// and 2 (h - 1) / h of its m / k across hosts. Together that is 2 (n - 1) / n m, as in a ring over
// all n = h k ranks. A host, of any size, sends 2 (h - 1) / h m to other hosts, the minimum for an
// all-reduce among h hosts (Patarasuk and Yuan). A ring over all ranks sends 2 (n - 1) / n m if its
// ranks are ordered by host, and up to k times that if not. Here k ranks send at once, so many
// cores and connections share the work.
//
// Hops: one in, one out, and between them 2 (h - 1) of a ring. Two hosts need only one: both
// exchange their sums and add them up. With one host this is the two-shot all-reduce; with one rank
// per host it is a ring.
//
// Stages. With up to two hosts every hop has a stage, and the program is written from the last
// stage to the first: a turn receives what the previous turn sent. With more hosts a chunk has one
// part per host, and a turn would need more credit than there is. So every step of the ring runs
// for two slices. Contributions are sent one step before they are needed, and results are received
// one step later.
//
// Source: lanes are those of Traeff and Hunold, "Decomposing MPI collectives for exploiting
// multi-lane communication", 2020. Horovod's hierarchical all-reduce has the same three phases, for
// equal hosts. Open MPI's HAN (Luo et al., "HAN: a hierarchical autotuned collective communication
// framework", 2020) pipelines them through one leader per host, which must move all bytes of its
// host.
#include "collectives/algorithms/hierarchical.h"

#include <algorithm>
#include <vector>

#include "collectives/algorithms/hierarchical_writer.h"
#include "collectives/algorithms/ring.h"

namespace kolo::inline v0 {
namespace {

using namespace steps;

// The number of parts of a lane's chunk.
int parts_of(const Lanes& lanes) { return lanes.hosts() > 2 ? lanes.hosts() : 1; }

class AllReduce : public HierarchicalWriter {
 public:
  explicit AllReduce(const ScheduleRequest& request)
      : HierarchicalWriter(request, Collective::kAllReduce), parts_(parts_of(lanes())) {
    schedule().chunks = lanes().lanes() * parts_;
    schedule().input = schedule().output = {0, schedule().chunks};
  }

  Schedule write() {
    if (lanes().hosts() > 2) {
      ring_across();
    } else {
      exchange();
    }
    return std::move(schedule());
  }

 private:
  int chunk(int lane, int part) const { return lane * parts_ + part; }

  void give(int part) {
    for (const int owner : receivers()) {
      const int lane = lanes().lane_of(owner);
      if (lane != kNoLane) add(send(owner, input(chunk(lane, part))));
    }
  }

  void send_result(int part) {
    for (const int other : receivers()) add(send(other, output(chunk(lane(), part))));
  }

  void take_results(int part) {
    for (const int owner : givers()) {
      const int lane = lanes().lane_of(owner);
      if (lane != kNoLane) add(receive(owner, output(chunk(lane, part))));
    }
  }

  // --- one or two hosts ---

  void exchange() {
    const int last = lanes().hosts();
    at(last + 1);
    take_results(0);
    if (has_lane()) {
      if (last == 1) {
        at(1);
        finish(lane(), givers());
      } else {
        exchange_sums();
      }
      at(last);
      send_result(0);
    }
    at(0);
    give(0);
  }

  // Both partners add the same two sums in the same order. The host's own sum waits in the output.
  void exchange_sums() {
    const int partner = lanes().rank(1 - host(), lane());
    const Operand mine = is_alone() ? input(lane()) : output(lane());
    const Operand out = output(lane());
    at(2);
    add(final(in_last_if(host() == 1, receive_reduce(partner, mine, out))));
    at(1);
    const Operand before = sum_before_last(lane(), givers());
    add(is_alone() ? copied(send(partner, before))
                   : receive_reduce_copy_send(givers().back(), partner, before, out));
  }

  // --- three or more hosts ---

  void ring_across() {
    const Schedule ring = ring_all_reduce({.rank = host(), .size = lanes().hosts()});
    schedule().slices = ring.slices;
    std::vector<Step> sums;  // the steps that need the host's sum
    std::copy_if(ring.steps.begin(), ring.steps.end(), std::back_inserter(sums),
                 [](const Step& step) { return step.in.place == Place::kInput; });
    std::size_t given = 0;
    std::size_t summed = 0;
    const Step* result = nullptr;  // the step of the latest result on this host
    for (const Step& step : ring.steps) {
      if (step.in.place == Place::kInput) {
        ++summed;
        for (; given < std::min(summed + 1, sums.size()); ++given) {
          at(0, sums[given].slice);
          give(sums[given].chunk);
        }
      }
      at(0, step.slice);
      if (has_lane()) add_ring_step(step);
      if (step.out.place != Place::kOutput) continue;
      if (has_lane()) send_result(step.chunk);
      take(result);
      result = &step;
    }
    take(result);
  }

  void take(const Step* result) {
    if (result == nullptr) return;
    at(0, result->slice);
    take_results(result->chunk);
  }

  void add_ring_step(const Step& of_hosts) {
    Step step = in_lane(of_hosts, lane());
    const int mine = chunk(lane(), step.chunk);
    if (step.kind == StepKind::kSend) return send_sum(mine, step.to);
    if (step.in.place == Place::kInput) step.in = sum(mine);
    if (step.out.place == Place::kOutput) step.out = output(mine);
    step.chunk = static_cast<std::uint16_t>(mine);
    add(step);
  }

  int parts_;
};

}  // namespace

Schedule hierarchical_all_reduce(const ScheduleRequest& request) {
  return AllReduce(request).write();
}

Traffic hierarchical_all_reduce_traffic(const ScheduleRequest& request, std::size_t count) {
  const Lanes lanes(request);
  const int hosts = lanes.hosts();
  const int parts = parts_of(lanes);
  const int mine = lanes.lane_of(request.rank);
  const int host = lanes.host_of(request.rank);
  if (mine == kNoLane) return {count, 0};
  const auto part = [&](int number) {
    return chunk_count(count, lanes.lanes() * parts, mine * parts + number % parts);
  };
  std::size_t owned = 0;
  for (int number = 0; number < parts; ++number) owned += part(number);
  const std::size_t across = hosts == 1   ? 0
                             : hosts == 2 ? owned
                                          : 2 * owned - part(host) - part(host + 1);
  const auto others = static_cast<std::size_t>(lanes.size(host) - 1);
  return {count - owned + across + others * owned, across};
}

}  // namespace kolo::inline v0
