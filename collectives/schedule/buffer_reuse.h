// Decides which sends of a schedule may use the caller's memory, and which must send a copy.
//
// Using the memory is safe if nothing overwrites it while the send is in flight, or if the
// overwriting data depends on the sent data. The second case is a plain receive of a chunk that
// left this rank only by that send. For example, a complete reduction cannot arrive before our
// contribution was received.
#pragma once

#include <vector>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// True if the step sends from an operand's memory, not from a sum made in a slot.
bool sends_from_memory(const Step& step);

// By step: true if a send from memory must send a copy.
std::vector<bool> sends_needing_copies(const Schedule& schedule);

// True if this rank sends everything from memory, without copies: its part of
// Schedule::leaves_from_memory.
bool leaves_from_memory(const Schedule& schedule);

}  // namespace kolo::inline v0
