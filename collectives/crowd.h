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
inline constexpr std::size_t kCrowdBytes = 8 * 1024;  // of a long message, where it may be so long

// Microseconds for a round of each.
struct Crowd {
  double in_turn_us = 0;
  double at_once_us = 0;
  double long_us = 0;  // at once, with long messages
  std::size_t long_bytes = kCrowdBytes;
};

// What the simulator makes of them, for ranks on these hosts (by rank; one element each).
Crowd simulated_crowd(const Costs& costs, std::span<const int> hosts);

// The costs with which it makes of them what was measured: how long a message keeps ranks busy (up
// to four times as long as a pair's; its latency is less by that), what a change of ranks on a core
// costs, and how long a byte keeps ranks of one host busy (a quarter to twice as long as a pair's).
Costs fitted(const Costs& of_a_pair, const Crowd& measured, std::span<const int> hosts);

}  // namespace kolo
