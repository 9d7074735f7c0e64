// Timeouts of stores, for a server or a lock holder that hangs.
#pragma once

#include <algorithm>
#include <chrono>

#include "transports/transport.h"

namespace kolo {

// Timeout of calls without a deadline of their own; a healthy store answers them at once. It is the
// time that the caller allowed for connecting (start to deadline), within 3 s (a busy machine may
// need that) and 30 s.
inline Clock::duration patience_of(Clock::time_point start, Deadline deadline) {
  constexpr Clock::duration kLeast = std::chrono::seconds(3);
  constexpr Clock::duration kMost = std::chrono::seconds(30);
  return deadline <= start ? kLeast : std::clamp(deadline - start, kLeast, kMost);
}

// Timeout of reporting a failure and of goodbyes, so that a job's end does not wait for long.
inline constexpr std::chrono::seconds kLastPatience{1};

}  // namespace kolo
