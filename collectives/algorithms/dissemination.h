// Dissemination barrier: see dissemination.cpp for the idea.
#pragma once

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Runs over the executor's scratch with a count of kBarrierCount elements, no input and no output.
// A rank sends chunk 0 and receives into chunk 1.
inline constexpr int kBarrierCount = 2;
Schedule dissemination_barrier(const ScheduleRequest& request);

// Elements that every rank sends: ceil(log2(size)).
int dissemination_barrier_sent(int size);

}  // namespace kolo::inline v0
