// Dissemination barrier: see dissemination.cpp for the idea.
#pragma once

#include "collectives/schedule.h"

namespace kolo {

// Runs over the executor's scratch, with a count of kBarrierCount elements, no input and no output:
// chunk 0 is what a rank says, chunk 1 what it hears.
inline constexpr int kBarrierCount = 2;
Schedule dissemination_barrier(const ScheduleRequest& request);

// The elements that every rank sends: ceil(log2(size)).
int dissemination_barrier_sent(int size);

}  // namespace kolo
