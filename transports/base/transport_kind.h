// A row of the registry's table of transports. Only the registry uses the table.
//
// A transport `x` has a header x/transport.h (a settings struct and one factory). Its source
// x/transport.cpp also defines `TransportKind x_transport()`. In CMakeLists.txt
// `kolo_component(transport x SOURCE x/transport.cpp)` adds the row.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transports/error.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::inline v0 {

// Largest distance of two ranks. "auto" prefers the shortest reach that joins all ranks.
enum class Reach { kProcess, kHost, kNetwork };

// Thrown by `make` if it refuses on every rank, so that all ranks can take another transport
// (kUnavailable).
class RefusedByAll : public Error {
 public:
  RefusedByAll(int peer, const std::string& text) : Error(ErrorCode::kUnavailable, peer, text) {}
};

struct TransportKind {
  std::string name;
  Reach reach = Reach::kNetwork;

  // Why this machine cannot run it ("memfd_create: Function not implemented"); empty: it can.
  // "auto" asks every rank. Null: every machine can.
  std::function<std::string()> why_unusable = nullptr;

  std::function<std::unique_ptr<Transport>(const TransportRequest& request)> make;

  // std::invalid_argument, with the variable, if this machine does not support a setting. Null:
  // nothing to check.
  std::function<void(const Settings& settings)> check_settings = nullptr;

  // What can carry its data on this machine, if a setting chooses among several (providers). Null:
  // no choice.
  std::vector<std::string> (*ways)() = nullptr;

  // Why it does not serve the devices of these ranks; empty: it does. The same answer on every
  // rank. Called only if its reach joins the ranks. Null: it serves no devices. If no transport
  // serves them, or `make` throws RefusedByAll, "auto" stages device memory over another one.
  std::string (*why_not_serving)(const TransportRequest& request) = nullptr;

  // Whether `make` uses topology_of().
  bool needs_topology = false;

  // Whether "auto" may select it (and asks why_unusable). False: only by name.
  bool is_for_auto = true;

  // Whether it uses RDMA hardware. If all hosts have such hardware, "auto" prefers this transport
  // to others of the same reach. Null: it never uses RDMA.
  bool (*uses_rdma)(const Settings& settings) = nullptr;

  // Whether it can leave out ranks that are out of its reach (TransportRequest::peers), and so join
  // the ranks of each host beside a transport between hosts.
  bool can_leave_out = false;
};

// The request's topology, or the one that this call finds. Collective, once per store.
std::shared_ptr<const Topology> topology_of(const TransportRequest& request);

// Makes the transport of "auto" for the ranks of the request, without `above`, and ignores
// KOLO_TRANSPORT. For a transport that leaves a part of its work to another one. It has no
// decorators, since `above` will have them. Collective; the store needs a prefix of its own.
std::unique_ptr<Transport> make_beneath(std::string_view above, const TransportRequest& request);

}  // namespace kolo::inline v0
