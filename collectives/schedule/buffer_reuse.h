// Which sends of a schedule may leave the caller's memory in use until they have left, and which
// must send a copy.
//
// It is safe where nothing overwrites the memory meanwhile, and where what is received into it
// descends from what was sent: a plain receive of a chunk whose only way out of this rank was that
// send (a reduction comes back complete, and cannot be without our part).
#pragma once

#include <vector>

#include "collectives/schedule.h"

namespace kolo {

// Whether a step's bytes leave from where an operand lies, and not from where a sum is made.
bool sends_from_memory(const Step& step);

// By step: of those that send from memory, whether a copy has to leave.
std::vector<bool> sends_needing_copies(const Schedule& schedule);

// Whether all that this rank sends leaves from memory, and no copy of it: what a schedule says of
// all ranks (Schedule::leaves_from_memory) holds for this one.
bool leaves_from_memory(const Schedule& schedule);

}  // namespace kolo
