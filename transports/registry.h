// The transports in this build, and the one way to make one.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo {

// What every transport is given to build itself.
struct TransportRequest {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;   // already prefixed: keys are this transport's own
  Deadline deadline;              // for finding the others
  std::size_t segment_bytes = 0;  // 0: the transport's default
  int local_ranks = 0;            // ranks on this host, for waiting policies; 0: unknown
};

// Names of the transports compiled in, in order of preference on one host.
std::vector<std::string_view> transport_names();

// Builds the transport `name` for this rank; collective over all ranks of the request. "auto" takes
// the best one that all ranks can use. std::invalid_argument for an unknown name, listing those
// there are; Error kMismatch where ranks ask for different ones.
std::unique_ptr<Transport> make_transport(std::string_view name, const TransportRequest& request);

}  // namespace kolo
