// Endpoint address of a rank, published in the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kolo::inline v0::ucx {

struct EndpointAddress {
  std::string identity;           // of the host
  std::string liveness;           // name of the unix socket for liveness
  std::string address;            // UCX's address of the worker, binary
  std::uint32_t token = 0;        // random, one per transport object
  std::size_t segment_bytes = 0;  // longest segment, the same on all ranks
  std::size_t host_bytes = 0;     // preferred segment size if all ranks are on its host
};

std::string to_text(const EndpointAddress& address);

// Error kProtocol, with `rank`, if `text` is damaged or of a different version.
EndpointAddress address_from_text(const std::string& text, int rank);

}  // namespace kolo::inline v0::ucx
