// What is said first on a socket between two ranks, by each of them once; their region comes along.
// Plain bytes: both ends are on one machine.
#pragma once

#include <cstdint>

#include "transports/shm/layout.h"

namespace kolo::shm {

struct Hello {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kLayoutVersion;
  std::int32_t rank = 0;             // who says it
  std::uint64_t ticket[2] = {0, 0};  // of the rank that is called: see address.h
  std::uint64_t reserved = 0;        // room for a proof of the job's secret begins here

  bool operator==(const Hello&) const = default;
};

}  // namespace kolo::shm
