// Where the ranks of a job are, as far as it matters: who shares a host, who a process, and how
// many cores there are for those on this host.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "transports/rendezvous.h"

namespace kolo {

struct Topology {
  bool is_one_process = true;  // all ranks are threads of this process
  bool is_one_host = true;     // all ranks can share memory
  int local_ranks = 1;         // ranks on this machine, which may play several hosts; this one too
  int local_index = 0;         // this rank among them, in order of rank
  int local_cores = 1;  // cores that these may use together: union of affinity masks, bounded by
                        // the cgroup's quota
  // What the last-level cache holds for this rank, if the local ones share it evenly; the most
  // that there can be where the system does not say.
  std::size_t cache_bytes = std::numeric_limits<std::size_t>::max();
  std::vector<int> hosts;  // by rank: hosts are numbered in the order of their first ranks
  std::vector<std::string> devices;  // by rank, what each said of its device; empty: it has none
};

// Collective over all ranks of the store, once. `host_id`: as Settings::host_id; `device`: a line
// that says which this rank has (cuda/reach.h).
Topology find_topology(Store& store, int rank, int size, Deadline deadline,
                       std::string_view host_id = {}, std::string_view device = {});

// The same from the texts that ranks publish of themselves; find_topology exchanges these.
std::string describe_location(std::string_view host_id = {}, std::string_view device = {});
Topology topology_from(const std::vector<std::string>& places, int rank);

// Holds `size` against that of the first rank of the job that called this: Error kMismatch names
// both where they differ. It waits for no rank but, for a moment, that first one.
void require_one_size(Store& store, int rank, int size, Deadline deadline);

}  // namespace kolo
