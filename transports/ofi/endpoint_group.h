// Group of the shm endpoints of one job in one process, closed together.
//
// Endpoints of libfabric's shm provider access one another's shared regions, by plain pointers
// within a process. An endpoint that closes unmaps its region, and the other endpoints read that
// region when they close. So all endpoints of a job in one process close together when the last one
// is done; until then the endpoints that are done stay open. Each region is unlinked once all ranks
// have opened it, so a rank killed later leaves nothing in /dev/shm.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "transports/ofi/fids.h"

namespace kolo::inline v0::ofi {

struct EndpointGroup {
  std::string name;     // the same for all members, and unique to the job
  std::size_t members;  // ranks of the job that are threads of this process
};

// Takes the endpoint of a member that is done. Closes all of them once all members are done. Safe
// from any thread.
void close_together(const EndpointGroup& household, Fids fids);

// Takes an endpoint whose rank failed before all ranks connected. Other ranks of this process may
// have opened its region, so it stays open until the process ends.
void keep_open(Fids fids);

// Unlinks an endpoint's region from /dev/shm. `name` is the result of fi_getname.
void unlink_region(const std::string& name) noexcept;

}  // namespace kolo::inline v0::ofi
