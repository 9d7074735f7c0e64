// How long stores wait for who may hang: the process that serves one, or who has the lock of its
// file.
#pragma once

#include <algorithm>
#include <chrono>

#include "transports/transport.h"

namespace kolo {

// For calls that have no deadline of their own: who is well answers them at once. Who gave less to
// connecting, until `deadline`, would not wait that long later either; a busy machine needs the
// least.
inline Clock::duration patience_of(Clock::time_point start, Deadline deadline) {
  constexpr Clock::duration kLeast = std::chrono::seconds(3);
  constexpr Clock::duration kMost = std::chrono::seconds(30);
  return deadline <= start ? kLeast : std::clamp(deadline - start, kLeast, kMost);
}

// For the last words of a job that has failed, and for goodbyes: its end must not wait for long.
inline constexpr std::chrono::seconds kLastPatience{1};

}  // namespace kolo
