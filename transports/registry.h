// The transports in this build, and the one way to make one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous.h"
#include "transport.h"

namespace kolo {

namespace cuda {
class Driver;
}

// A rank's device, for transports that serve device memory.
struct DeviceRequest {
  int number = 0;                        // as this process counts them
  std::shared_ptr<cuda::Driver> driver;  // null: the installed one
  std::string process = {};              // equal for ranks of one process; empty: found out
};

// What every transport is given to build itself.
struct TransportRequest {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;   // already prefixed: keys are this transport's own
  Deadline deadline;              // for finding the others
  std::size_t segment_bytes = 0;  // 0: the transport's default
  int local_ranks = 0;            // ranks on this machine, for waiting policies; 0: unknown
  std::string host_id = {};       // as which host this rank counts; empty: as the settings say
  // Decorators, as KOLO_SHAPE, KOLO_FAULT and KOLO_TRACE say it; empty: as the settings say.
  std::string shape = {};
  std::string fault = {};
  std::string trace = {};
  // Ranks with devices: then "auto" prefers what serves those of all, unless that is refused (as
  // IPC is in some containers: the transport's carrier() says why), and what does not is staged
  // (base/staged.h) for who has one. `devices`: what every rank says of its own, as Topology has
  // it; empty: there are none.
  std::optional<DeviceRequest> device = {};  // this rank's
  std::vector<std::string> devices = {};
};

// Names of the transports compiled in, in order of preference on one host.
std::vector<std::string_view> transport_names();

// What this build has, for who wants to choose.
struct TransportFact {
  std::string name;
  std::string reach;              // "threads of a process", "processes of a host", "any host"
  std::string why_unusable;       // on this machine; empty: it serves
  std::vector<std::string> ways;  // what it can go over here, where that can be chosen
};
std::vector<TransportFact> transport_facts();

// What `name` comes to before ranks have met: "auto" is what KOLO_TRANSPORT says, where it says
// something. std::invalid_argument for an unknown name, listing those there are, and for settings
// that cannot be read or that this machine cannot do.
std::string resolve_transport(std::string_view name);

// Why this machine cannot run `name`, a transport of this build or registered: a driver or a device
// that it lacks; empty where it can.
std::string why_unusable(std::string_view name);

// Whether ranks that are processes of their own can meet over `name`, or only threads of one.
bool joins_processes(std::string_view name);

// Builds the transport `name` for this rank; collective over all ranks of the request. "auto" takes
// the best one that all ranks can use. std::invalid_argument for an unknown name, listing those
// there are; Error kMismatch where ranks ask for different ones or shapes, kUnavailable where they
// count as different hosts and it does not reach from one to another.
std::unique_ptr<Transport> make_transport(std::string_view name, const TransportRequest& request);

}  // namespace kolo
