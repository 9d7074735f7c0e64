// First message on a socket between two ranks, sent once by each. It carries the descriptor of the
// sender's region. The struct is sent as plain bytes, as both ends are on one machine.
#pragma once

#include <cstdint>

#include "transports/shm/layout.h"

namespace kolo::inline v0::shm {

struct Hello {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kLayoutVersion;
  std::int32_t rank = 0;             // the sender
  std::uint64_t ticket[2] = {0, 0};  // of the rank that was connected to: see address.h
  std::uint64_t reserved = 0;        // for a later proof of a job's secret

  bool operator==(const Hello&) const = default;
};

}  // namespace kolo::inline v0::shm
