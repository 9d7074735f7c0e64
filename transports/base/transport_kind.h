// One row of the table of transports: what the registry knows of each. Nothing but the registry
// sees the table.
//
// A transport `x` has a header x.h (a settings struct and one factory) and a source x.cpp that also
// defines `TransportKind x_transport()`; `kolo_component(transport x)` in CMakeLists.txt adds the
// row.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transports/error.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo {

// How far apart two ranks may be; "auto" prefers the shortest reach that covers all ranks.
enum class Reach { kProcess, kHost, kNetwork };

// What `make` throws where it refuses on every rank, so that all may do without it: kUnavailable.
class RefusedByAll : public Error {
 public:
  RefusedByAll(int peer, const std::string& text) : Error(ErrorCode::kUnavailable, peer, text) {}
};

struct TransportKind {
  std::string_view name;
  Reach reach = Reach::kNetwork;

  // Whether this machine can run it: empty, or why it cannot ("memfd_create: Function not
  // implemented"). "auto" asks every rank. Null: always.
  std::string (*why_unusable)() = nullptr;

  std::function<std::unique_ptr<Transport>(const TransportRequest& request)> make;

  // std::invalid_argument, naming the variable, where this machine cannot do what a setting asks.
  // Null: nothing to check.
  void (*check_settings)(const Settings& settings) = nullptr;

  // What it can go over on this machine, where a setting chooses among several. Null: nothing.
  std::vector<std::string> (*ways)() = nullptr;

  // Why it does not serve the devices of these ranks, which share a host if its reach asks for
  // that; empty where it does, and the same answer on every rank. Null: it knows nothing of
  // devices. "auto" stages device memory over another one for that reason, or where `make` throws
  // RefusedByAll.
  std::string (*why_not_serving)(const TransportRequest& request) = nullptr;

  // Whether "auto" may take it, and asks whether it is usable; others are for who names them.
  bool is_for_auto = true;
};

// What "auto" comes to for the ranks of the request, without `above` and whatever KOLO_TRANSPORT
// says: for a transport that leaves a part of its work to another one. Undecorated, since `above`
// will be. Collective; the store's keys must be its own.
std::unique_ptr<Transport> make_beneath(std::string_view above, const TransportRequest& request);

}  // namespace kolo
