// Base of the hierarchical schedules: the peers of a rank, and sums inside a host.
//
// A rank that sums a chunk starts with its own share and adds its neighbours' shares as they
// arrive, first that of the rank before it. Each rank sends to the neighbour after it first, so
// that no receiver is flooded.
#pragma once

#include <utility>
#include <vector>

#include "collectives/algorithms/lanes.h"
#include "collectives/algorithms/steps.h"

namespace kolo::inline v0 {

class HierarchicalWriter {
 public:
  HierarchicalWriter(const ScheduleRequest& request, Collective collective, bool has_root = false)
      : lanes_(request, has_root),
        rank_(request.rank),
        host_(lanes_.host_of(request.rank)),
        lane_(lanes_.lane_of(request.rank)),
        receivers_(lanes_.neighbours(request.rank)),
        givers_(receivers_.rbegin(), receivers_.rend()) {
    schedule_.collective = collective;
    schedule_.algorithm = "hierarchical";
    schedule_.rank = request.rank;
    schedule_.size = request.size;
    schedule_.contributions = request.size;
  }

  const Lanes& lanes() const { return lanes_; }
  int rank() const { return rank_; }
  int host() const { return host_; }
  int lane() const { return lane_; }
  bool has_lane() const { return lane_ != kNoLane; }
  // The other ranks of this host: in the order of sending, and in the order of receiving.
  const std::vector<int>& receivers() const { return receivers_; }
  const std::vector<int>& givers() const { return givers_; }
  bool is_alone() const { return givers_.empty(); }

  Schedule& schedule() { return schedule_; }

  // Sets the stage and the slice of the steps that follow.
  void at(int stage, int slice = 0) {
    stage_ = stage;
    slice_ = slice;
  }

  void add(Step step) {
    step.stage = static_cast<std::uint8_t>(stage_);
    step.slice = static_cast<std::uint8_t>(slice_);
    schedule_.steps.push_back(step);
  }

  // Adds the shares of all `givers` except the last to this rank's own share of `chunk`. Returns
  // the place of that sum. The caller adds the last share in the step that forwards the sum.
  Operand sum_before_last(int chunk, const std::vector<int>& givers) {
    Operand sum = steps::input(chunk);
    for (std::size_t k = 0; k + 1 < givers.size(); ++k) {
      add(steps::receive_reduce(givers[k], sum, steps::scratch(chunk)));
      sum = steps::scratch(chunk);
    }
    return sum;
  }

  // Computes the host's sum of `chunk`; it is valid within this turn.
  Operand sum(int chunk) {
    const Operand before = sum_before_last(chunk, givers_);
    if (is_alone()) return before;
    add(steps::receive_reduce(givers_.back(), before, steps::scratch(chunk)));
    return steps::scratch(chunk);
  }

  // Sends the host's sum of `chunk` to another rank.
  void send_sum(int chunk, int to, bool is_final = false) {
    const Operand before = sum_before_last(chunk, givers_);
    add(is_alone()
            ? steps::send(to, before)
            : steps::final_if(is_final, steps::receive_reduce_send(givers_.back(), to, before)));
  }

  // Adds the shares of all `givers` to this rank's own share of `chunk`, into the output: the
  // result.
  void finish(int chunk, const std::vector<int>& givers) {
    const Operand before = sum_before_last(chunk, givers);
    const Operand out = steps::output(chunk);
    add(steps::final(givers.empty() ? steps::copy(before, out)
                                    : steps::receive_reduce(givers.back(), before, out)));
  }

  // Converts a step between hosts to a step between the ranks of `lane` on these hosts. The caller
  // sets the operands.
  Step in_lane(Step step, int lane) const {
    if (step.from != kNobody) step.from = rank_in(step.from, lane);
    if (step.to != kNobody) step.to = rank_in(step.to, lane);
    return step;
  }

 private:
  std::int16_t rank_in(int host, int lane) const {
    return static_cast<std::int16_t>(lanes_.rank(host, lane));
  }

  Lanes lanes_;
  int rank_;
  int host_;
  int lane_;
  std::vector<int> receivers_;
  std::vector<int> givers_;
  int stage_ = 0;
  int slice_ = 0;
  Schedule schedule_;
};

}  // namespace kolo::inline v0
