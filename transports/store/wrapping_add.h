// Addition of store counters: wraps around from the largest number to the smallest in all stores.
#pragma once

#include <cstdint>

namespace kolo {

constexpr std::int64_t wrapping_add(std::int64_t one, std::int64_t other) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(one) +
                                   static_cast<std::uint64_t>(other));
}

}  // namespace kolo
