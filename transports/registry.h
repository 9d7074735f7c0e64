// Registry of transports: those of this build, and how to make one by name.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous.h"
#include "transport.h"

namespace kolo::inline v0 {

struct Topology;

namespace cuda {
class Driver;
}

// A rank's device, for transports that serve device memory.
struct DeviceRequest {
  int number = 0;                        // in this process's numbering
  std::shared_ptr<cuda::Driver> driver;  // null: the installed one
  std::string process = {};              // equal for ranks of one process; empty: detected
};

// Arguments for making any transport.
struct TransportRequest {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;   // already prefixed: its keys are private to this transport
  Deadline deadline;              // for finding the peers
  std::size_t segment_bytes = 0;  // 0: the transport's default
  int local_ranks = 0;            // ranks on this machine, for waiting policies; 0: unknown
  std::string host_id = {};       // simulated host of this rank; empty: as in the settings
  // Decorators, as in KOLO_SHAPE, KOLO_FAULT and KOLO_TRACE; empty: as in the settings.
  std::string shape = {};
  std::string fault = {};
  std::string trace = {};
  Log log = {};  // for a trace that cannot be written at the end
  // Ranks with devices. "auto" then prefers a transport that serves all devices, unless it is
  // refused (some containers refuse IPC; the transport's carrier() states the reason). Over other
  // transports device memory is staged (base/staged.h). `devices`: the device of every rank, as in
  // Topology; empty: none has one.
  std::optional<DeviceRequest> device = {};  // this rank's
  std::vector<std::string> devices = {};
  // With this `host_id`; null: make_transport() finds it if it is needed.
  std::shared_ptr<const Topology> topology = nullptr;
  // Link layers of this host's RDMA ports ("InfiniBand"), for tests. nullopt: asks the kernel.
  std::optional<std::vector<std::string>> rdma_links = {};
  // By rank: whether the transport connects it with this one. Other ranks take part in the making,
  // but may be out of reach. Empty: all.
  std::vector<bool> peers = {};

  bool has_peer(int peer) const {
    return peer != rank && (peers.empty() || peers[static_cast<std::size_t>(peer)]);
  }
};

// Names of the transports compiled in, in order of preference on one host.
std::vector<std::string> transport_names();

// Description of a transport of this build, for choosing one.
struct TransportFact {
  std::string name;
  std::string reach;              // "threads of a process", "processes of a host", "any host"
  std::string why_unusable;       // on this machine; empty: usable
  std::vector<std::string> ways;  // what can carry its data here, if there is a choice
};
std::vector<TransportFact> transport_facts();

// Resolves `name` before the rendezvous: KOLO_TRANSPORT, if set, replaces "auto".
// std::invalid_argument for an unknown name, listing the known ones, and for settings that cannot
// be read or that this machine does not support.
std::string resolve_transport(std::string_view name);

// Why this machine cannot run `name` (of this build, or registered), such as a missing driver or
// device; empty: it can.
std::string why_unusable(std::string_view name);

// Whether `name` joins ranks in different processes, or only threads of one.
bool joins_processes(std::string_view name);

// Makes the transport `name` for this rank; collective over all ranks of the request. "auto" takes
// the best one that all ranks can use. On several hosts with several ranks this is one within each
// host and one between them. Its name is "shm+tcp", and it may be asked for by this name, too.
// std::invalid_argument for an unknown name, listing the known ones. Error kMismatch if ranks ask
// for different transports or shapes. Error kUnavailable if the ranks are on different (maybe
// simulated) hosts and the transport joins only one host.
std::unique_ptr<Transport> make_transport(std::string_view name, const TransportRequest& request);

}  // namespace kolo::inline v0
