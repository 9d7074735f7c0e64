// What messages cost ranks that share cores.
//
// A pair that has the machine to itself does not say it: in a crowd a rank finds its messages late
// and its caches cold, and who has to wait gives its core away. So all ranks exchange messages with
// their neighbours in a ring, in two ways, and the two times tell two unknowns apart. (With
// neighbours only, as every connection that is made to measure is one that may never be needed.)
#pragma once

#include <span>

#include "collectives/costs.h"

namespace kolo {

// Microseconds for each of kCrowdRounds rounds of these.
struct Crowd {
  double in_turn_us = 0;  // to the right, and from the left; then to the left, and from the right
  double at_once_us = 0;  // to the right and to the left; then from both
};

inline constexpr int kCrowdRounds = 8;

// What the simulator makes of the two, for ranks on these hosts (by rank; one element each).
Crowd simulated_crowd(const Costs& costs, std::span<const int> hosts);

// The costs with which it makes of them what was measured: how long a message keeps ranks busy (up
// to four times as long as a pair's; its latency is less by that) and what a change of ranks on a
// core costs.
Costs fitted(const Costs& of_a_pair, const Crowd& measured, std::span<const int> hosts);

}  // namespace kolo
