// Planner: chooses the algorithm of a call that names none.
//
// The simulator predicts the time of every candidate's schedules, of all ranks, with the costs
// measured at the start of the job (probe.h). The cheapest is chosen once per collective and power
// of two of bytes, and cached. Long messages are priced by a short one and the slope from there.
// More than 16 ranks are priced by extrapolation from 1, 4 and 16. So a choice takes about a
// millisecond with 8 ranks, and at most some milliseconds in any job.
//
// A point of a measured table (tuning.h) overrides the prediction. Calls on streams whose data no
// host carries have a planner of their own, with the costs of devices (device_costs.h).
//
// All ranks must choose the same algorithm. So they use the same costs and the same table (rank
// 0's), and bit-exact IEEE arithmetic without contraction.
//
// Compare NCCL's latency and bandwidth tables per algorithm and protocol, and Open MPI's tuned
// component. Here the price follows from the schedule, so a new algorithm needs no table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/costs.h"
#include "collectives/executor/plan_cache.h"
#include "collectives/planner/tuning.h"
#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Inputs of the planner, the same on all ranks.
struct PlannerInputs {
  int size = 1;
  std::vector<int> hosts;  // by rank, as in ScheduleRequest
  std::string transport;
  bool can_answer = false;
  int credit = 4;  // segments in flight per channel and direction
  SegmentRule segments;
  std::size_t asked_segment_bytes = 0;  // CommunicatorOptions::segment_bytes
  // For calls on streams whose data no host carries, with costs of device_costs.h. Segments are as
  // long as slots (segments.longest), or segments.straight if all sends leave from memory.
  bool is_on_streams = false;
};

// Order of combination that a reduction needs.
enum class RankOrder : std::uint8_t {
  kAny,
  kOperands,  // x0 op x1 op x2 ..., with any brackets: op does not commute
  kFold,      // ((x0 op x1) op x2) ...: the same bits with any algorithm
};

class Planner {
 public:
  Planner() = default;
  Planner(PlannerInputs situation, const Costs& costs, TuningTable table);

  // The row of algorithms() for an operation of `bytes` in total. Throws std::invalid_argument if
  // no algorithm keeps the order.
  std::uint8_t choose(Collective collective, std::size_t bytes, RankOrder order = RankOrder::kAny);

  // Predicted microseconds of a row.
  double price(std::uint8_t row, std::size_t bytes) const;

  // All candidates in the table's order; the choice of choose() is marked.
  std::vector<Prediction> predict(Collective collective, std::size_t bytes,
                                  RankOrder order = RankOrder::kAny);

  const Costs& costs() const { return costs_; }
  const TuningTable& table() const { return table_; }

 private:
  static constexpr std::size_t kBuckets = 65;  // by the number of binary digits of the size
  static constexpr std::uint8_t kUndecided = 0xff;
  struct Choices {
    std::array<std::uint8_t, kBuckets> row;
    std::size_t measured_bytes = 0;  // the table's last query; measured_row is its result
    std::uint8_t measured_row = kUndecided;
  };

  std::uint8_t decide(Collective collective, std::size_t bytes, RankOrder order) const;
  std::optional<std::uint8_t> measured(Collective collective, std::size_t bytes,
                                       RankOrder order) const;
  double price_of(std::uint8_t row, std::size_t bytes, std::size_t ranks) const;
  std::size_t segment_of(const Schedule& schedule, std::size_t chunk_bytes) const;
  double doubt_of(std::uint8_t row, std::size_t bytes) const;
  std::vector<Schedule> program_of(std::uint8_t row, std::size_t bytes,
                                   const std::vector<int>& hosts) const;

  PlannerInputs inputs_;
  Costs costs_;
  TuningTable table_;
  bool has_points_ = false;       // the table has points for these inputs
  std::vector<Choices> choices_;  // by collective and order
};

}  // namespace kolo::inline v0
