// Costs of messages if ranks share cores (oversubscription).
//
// A pair of ranks alone on the machine does not show these costs. With more ranks than cores, a
// rank sees its messages late and with cold caches, and a waiting rank gives its core away. So all
// ranks exchange messages with their neighbours in a ring, in two orders. The two times determine
// two unknowns. Only neighbours take part, since each connection made here might never be needed
// again.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "collectives/costs.h"

namespace kolo::inline v0 {

enum class RingStep { kSendRight, kReceiveLeft, kSendLeft, kReceiveRight };
using RingRound = std::array<RingStep, 4>;

// The two orders. Every rank runs such a round kRingRounds times.
inline constexpr RingRound kAlternatingRound{RingStep::kSendRight, RingStep::kReceiveLeft,
                                             RingStep::kSendLeft, RingStep::kReceiveRight};
inline constexpr RingRound kSendsFirstRound{RingStep::kSendRight, RingStep::kSendLeft,
                                            RingStep::kReceiveLeft, RingStep::kReceiveRight};
inline constexpr int kRingRounds = 8;

// Microseconds for a round in each order.
struct RingTimes {
  double alternating_us = 0;
  double sends_first_us = 0;
};

// Hosts of a sample of `ranks` ranks, spread evenly over all ranks. Numbers its hosts from 0.
std::vector<int> sampled(std::span<const int> hosts, std::size_t ranks);

// Simulated times for ranks on these hosts (by rank, one element each).
RingTimes simulated_ring_times(const Costs& costs, std::span<const int> hosts);

// Costs for which the simulator gives the measured times. Fits two values: how long a message keeps
// ranks busy (at most four times as long as in a pair; its latency decreases by the difference),
// and the cost of switching ranks on a core.
Costs fit_shared_core_costs(const Costs& pair_costs, const RingTimes& measured,
                            std::span<const int> hosts);

}  // namespace kolo::inline v0
