// What is said first on a socket between two ranks, by who has called; its memfd comes along. Who
// is called answers with the caller's token. Plain bytes: both ends are on one machine.
#pragma once

#include <cstdint>

namespace kolo::cuda {

struct Hello {
  std::uint64_t magic = 0x6b6f6c6f63756461;  // "kolocuda"
  std::uint64_t token = 0;                   // of the rank that is called: see card.h
  std::int64_t rank = 0;                     // who says it
};

}  // namespace kolo::cuda
