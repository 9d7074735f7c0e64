// What messages cost ranks that share cores.
//
// A pair that has the machine to itself does not say it: in a crowd a rank finds its messages late
// and its caches cold, and who has to wait gives its core away. So all ranks exchange messages with
// their neighbours in a ring, in two ways, and the two times tell two unknowns apart. (With
// neighbours only, as every connection that is made to measure is one that may never be needed.)
#pragma once

#include <array>
#include <span>

#include "collectives/costs.h"

namespace kolo {

enum class RingStep { kSendRight, kReceiveLeft, kSendLeft, kReceiveRight };
using RingRound = std::array<RingStep, 4>;

// The two ways: every rank goes through such a round kRingRounds times.
inline constexpr RingRound kAlternatingRound{RingStep::kSendRight, RingStep::kReceiveLeft,
                                             RingStep::kSendLeft, RingStep::kReceiveRight};
inline constexpr RingRound kSendsFirstRound{RingStep::kSendRight, RingStep::kSendLeft,
                                            RingStep::kReceiveLeft, RingStep::kReceiveRight};
inline constexpr int kRingRounds = 8;

// Microseconds for a round of each.
struct RingTimes {
  double alternating_us = 0;
  double sends_first_us = 0;
};

// What the simulator makes of the two, for ranks on these hosts (by rank; one element each).
RingTimes simulated_ring_times(const Costs& costs, std::span<const int> hosts);

// The costs with which it makes of them what was measured: how long a message keeps ranks busy (up
// to four times as long as a pair's; its latency is less by that) and what a change of ranks on a
// core costs.
Costs fit_shared_core_costs(const Costs& pair_costs, const RingTimes& measured,
                            std::span<const int> hosts);

}  // namespace kolo
