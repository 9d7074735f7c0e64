// Client of PMI-1, the process manager interface of MPICH: one text from rank 0 to all ranks.
//
// The launcher gives each rank a connected descriptor, PMI_FD. A request is a line
// "cmd=NAME key=value ...", and so is its answer. Values contain no blanks. A value that was put is
// visible to all ranks after a barrier, which needs all of them. Described in "PMI: A Scalable
// Parallel Process-Management Interface for Extreme-Scale Systems" (2010), and in MPICH's sources.
#pragma once

#include <string>

#include "transports/transport.h"

namespace kolo::inline v0::launch {

// Returns `text` of rank 0 on all ranks; it contains no blanks. Collective, once per process: it
// ends the conversation, as a launcher that was greeted treats an end without that as a failure.
// Error kDeadline if the launcher or other ranks do not answer; kUnavailable if the launcher
// refuses.
std::string announce_by_pmi(int descriptor, int rank, const std::string& text, Deadline deadline);

}  // namespace kolo::inline v0::launch
