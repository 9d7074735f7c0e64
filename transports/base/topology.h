// Topology of a job: which ranks share a host or a process, and the cores and cache of this host.
//
// Ranks of different processes are of one machine if they reach each other's unix sockets. Each
// rank listens under a random name and tries the ranks before it in turn; on another machine, or in
// another network namespace, the name does not exist. So equal host names, or equal identities of
// cloned virtual machines, mislead no rank.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/rendezvous.h"

namespace kolo::inline v0 {

struct Topology {
  bool is_one_process = true;  // all ranks are threads of this process
  bool is_one_host = true;     // all ranks can share memory
  int local_ranks = 1;         // ranks on this machine (all its simulated hosts), with this one
  int local_index = 0;         // this rank's index among them, in order of rank
  int local_cores = 1;  // cores that these may use together: union of affinity masks, bounded by
                        // the cgroup's quota
  // This rank's even share of the last-level cache; the largest value if it is unknown.
  std::size_t cache_bytes = std::numeric_limits<std::size_t>::max();
  std::vector<int> hosts;  // by rank; hosts are numbered in the order of their first ranks
  std::vector<std::string> devices;  // by rank: description of its device; empty: no device
};

// Collective over all ranks of the store, once. `host_id`: as Settings::host_id. `device`: a line
// that describes this rank's device (cuda/peer_access.h).
Topology find_topology(Store& store, int rank, int size, Deadline deadline,
                       std::string_view host_id = {}, std::string_view device = {});

// The two halves of find_topology(): the text that a rank publishes, and the topology from all
// texts. `listener`: the name of this rank's unix socket; empty: none. `machines`: for each rank
// the first rank of its machine; empty: as the places say.
std::string describe_location(std::string_view host_id = {}, std::string_view device = {},
                              std::string_view listener = {});
Topology topology_from(const std::vector<std::string>& places, int rank,
                       std::span<const int> machines = {});

// Compares `size` with the size of the first rank of the job that called this. Error kMismatch
// names both if they differ. It waits for no other rank, and for the first one only a moment.
void require_one_size(Store& store, int rank, int size, Deadline deadline);

}  // namespace kolo::inline v0
