// First message on a socket between two ranks, sent by the connecting rank together with its memfd.
// The other rank answers with the connecting rank's token. Native layout, since both are on one
// machine.
#pragma once

#include <cstdint>

namespace kolo::inline v0::cuda {

struct Hello {
  std::uint64_t magic = 0x6b6f6c6f63756461;  // "kolocuda"
  std::uint64_t token = 0;                   // of the rank that is called: see address.h
  std::int64_t rank = 0;                     // the sender
};

}  // namespace kolo::inline v0::cuda
