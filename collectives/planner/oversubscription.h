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

enum class CrowdMove { kSayRight, kHearLeft, kSayLeft, kHearRight };
using CrowdRound = std::array<CrowdMove, 4>;

// The two ways: every rank goes through such a round kCrowdRounds times.
inline constexpr CrowdRound kInTurn{CrowdMove::kSayRight, CrowdMove::kHearLeft, CrowdMove::kSayLeft,
                                    CrowdMove::kHearRight};
inline constexpr CrowdRound kAtOnce{CrowdMove::kSayRight, CrowdMove::kSayLeft, CrowdMove::kHearLeft,
                                    CrowdMove::kHearRight};
inline constexpr int kCrowdRounds = 8;

// Microseconds for a round of each.
struct Crowd {
  double in_turn_us = 0;
  double at_once_us = 0;
};

// What the simulator makes of the two, for ranks on these hosts (by rank; one element each).
Crowd simulated_crowd(const Costs& costs, std::span<const int> hosts);

// The costs with which it makes of them what was measured: how long a message keeps ranks busy (up
// to four times as long as a pair's; its latency is less by that) and what a change of ranks on a
// core costs.
Costs fitted(const Costs& of_a_pair, const Crowd& measured, std::span<const int> hosts);

}  // namespace kolo
