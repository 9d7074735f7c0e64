// What a rank publishes in the store for the others of its host: where it listens, how its memory
// can be reached, and what both ends of a pair must have alike. One line of words, the last of
// which may have blanks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "transports/shm/layout.h"
#include "transports/shm/peer_memory.h"

namespace kolo::shm {

struct EndpointAddress {
  std::uint32_t version = kLayoutVersion;
  std::size_t segment_bytes = 0;
  int process = 0;
  std::uint64_t ticket[2] = {0, 0};  // who knows it is of this job
  std::string host;                  // its identity: see posix/identity.h
  std::string socket;                // empty: this rank cannot share memory
  ReadProbe trial;
  bool has_barriers = false;  // it accepts posix::barrier_everywhere
  std::string reason;         // why it cannot share memory
};

std::string to_text(const EndpointAddress& address);

// Error kProtocol that names the peer where the text is no address of this version.
EndpointAddress address_from_text(const std::string& text, int peer);

}  // namespace kolo::shm
