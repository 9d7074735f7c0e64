// Client of PMIx, the process manager interface of Open MPI: one text from rank 0 to all ranks.
//
// libpmix is loaded at run time; kolo is built without its headers. pmix.cpp declares the few types
// that are used. They are part of PMIx's stable binary interface, and are the same in versions 3 to
// 6.
#pragma once

#include <string>

#include "transports/transport.h"

namespace kolo::inline v0::launch {

// Returns `text` of rank 0 on all ranks. Once per process. `prefix`: where to look for libpmix
// first; may be empty. Error kDeadline if rank 0 does not come; kUnavailable if libpmix cannot be
// loaded or refuses.
std::string announce_by_pmix(const std::string& prefix, int rank, const std::string& text,
                             Deadline deadline);

}  // namespace kolo::inline v0::launch
