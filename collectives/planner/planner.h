// The planner: which algorithm a call runs that names none.
//
// Every candidate's schedule, of all ranks, is played by the simulator with the costs that were
// measured when the job began (probe.h); the cheapest is taken, once per collective and power of
// two of bytes, and remembered. Long messages are priced by a short one and the slope from there,
// more than 16 ranks by the growth from 1, 4 and 16: so a choice takes about a millisecond among 8
// ranks, and no more than some milliseconds, whatever the job.
// Where a measured table (tuning.h) has a point, its choice stands instead. Calls on streams whose
// data no host carries have a planner of their own, with the costs of devices (device_costs.h).
//
// All ranks must choose alike. So they have the same costs and the same table (rank 0's), and the
// arithmetic is IEEE's to the bit, without contraction.
//
// Compare NCCL's tuning of algorithm and protocol by latency and bandwidth tables, and Open MPI's
// tuned component; here the price comes from the schedule itself, so a new algorithm has one.
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

namespace kolo {

// What the planner plans for.
struct PlannerInputs {
  int size = 1;
  std::vector<int> hosts;  // by rank, as in ScheduleRequest
  std::string transport;
  bool can_answer = false;
  int credit = 4;  // segments in flight per channel and direction
  SegmentRule segments;
  std::size_t asked_segment_bytes = 0;  // CommunicatorOptions::segment_bytes
  // Of calls on streams whose data no host carries, with device_costs.h's costs: segments are as
  // long as slots (segments.longest), or, where all sends leave from memory, as segments.straight.
  bool is_on_streams = false;
};

// What a reduction asks of the order of its operands.
enum class RankOrder : std::uint8_t {
  kAny,
  kOperands,  // x0 op x1 op x2 ..., bracketed in some way: what does not commute
  kFold,      // ((x0 op x1) op x2) ...: the same bits whoever does it
};

class Planner {
 public:
  Planner() = default;
  Planner(PlannerInputs situation, const Costs& costs, TuningTable table);

  // The row of algorithms() for an operation of so many bytes in all. std::invalid_argument where
  // none keeps that order.
  std::uint8_t choose(Collective collective, std::size_t bytes, RankOrder order = RankOrder::kAny);

  // Microseconds that a row would take.
  double price(std::uint8_t row, std::size_t bytes) const;

  // All candidates, in the table's order, with what choose() takes among them marked.
  std::vector<Prediction> predict(Collective collective, std::size_t bytes,
                                  RankOrder order = RankOrder::kAny);

  const Costs& costs() const { return costs_; }
  const TuningTable& table() const { return table_; }

 private:
  static constexpr std::size_t kBuckets = 65;  // a size's number of binary digits
  static constexpr std::uint8_t kUndecided = 0xff;
  struct Choices {
    std::array<std::uint8_t, kBuckets> row;
    std::size_t measured_bytes = 0;  // what the table was last asked, and said
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
  bool has_points_ = false;       // the table has some for this situation
  std::vector<Choices> choices_;  // by collective and order
};

}  // namespace kolo
