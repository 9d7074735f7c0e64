// Endpoint address of a rank, published in the store for the other ranks of its host: its socket,
// how to read its memory, and the figures that both ends of a pair must share. The text form is one
// line of words; the last one may contain blanks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transports/shm/layout.h"
#include "transports/shm/peer_memory.h"

namespace kolo::inline v0::shm {

struct EndpointAddress {
  std::uint32_t version = kLayoutVersion;
  std::size_t segment_bytes = 0;
  int process = 0;
  std::uint64_t ticket[2] = {0, 0};  // random; proves that a connecting rank is of this job
  std::string host;                  // its identity: see posix/host/identity.h
  std::string socket;                // empty: this rank cannot share memory
  ReadProbe trial;
  bool has_barriers = false;  // this rank accepts posix::barrier_everywhere
  std::string reason;         // why this rank cannot share memory
};

std::string to_text(const EndpointAddress& address);

// Error kProtocol with the peer if the text is not an address of this version.
EndpointAddress address_from_text(const std::string& text, int peer);

}  // namespace kolo::inline v0::shm
