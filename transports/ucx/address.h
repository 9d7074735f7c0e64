// What a rank publishes for the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kolo::ucx {

struct EndpointAddress {
  std::string identity;           // of its host
  std::string lifeline;           // the name of its unix socket
  std::string address;            // of its worker, bytes of UCX's
  std::uint32_t token = 0;        // of this transport, random
  std::size_t segment_bytes = 0;  // the longest, alike on all ranks
  std::size_t host_bytes = 0;     // of the segments that it prefers where all are on its host
};

std::string to_text(const EndpointAddress& card);

// Error kProtocol where `text`, of `rank`, is torn or another version's.
EndpointAddress address_from_text(const std::string& text, int rank);

}  // namespace kolo::ucx
