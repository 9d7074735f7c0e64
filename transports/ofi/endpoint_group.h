// What libfabric's provider shm needs where it joins ranks of one process, and at every end.
//
// Its endpoints reach into one another's regions, and within a process by plain pointers: one that
// is closed takes its region from under all others, which look into it when they are closed
// themselves. So the endpoints of one job in one process are closed together, when the last of them
// is done; until then those that are done rest. No region has a name any more once all ranks have
// found it: so nothing is left in /dev/shm, whoever is killed after that.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "transports/ofi/fids.h"

namespace kolo::ofi {

struct EndpointGroup {
  std::string name;     // the same for all its members, and of no other job
  std::size_t members;  // ranks of the job that are threads of this process
};

// Takes an endpoint of one member that is done; closes them all when they are all here. From any
// thread.
void close_together(const EndpointGroup& household, Fids fids);

// Takes an endpoint whose rank never met the others of its process, some of which may have found
// its region: nobody can be asked, so it stays open until the process ends.
void keep_open(Fids fids);

// Takes the name of an endpoint's region, which has `name` (of fi_getname), out of /dev/shm.
void unlink_region(const std::string& name) noexcept;

}  // namespace kolo::ofi
