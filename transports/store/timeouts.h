// Timeouts of stores, for a server or a lock holder that hangs.
#pragma once

#include <algorithm>
#include <chrono>

#include "transports/transport.h"

namespace kolo::inline v0 {

// Timeout of calls without a deadline of their own; a healthy store answers them at once. It is the
// time that the caller allowed for connecting (start to deadline), within 3 s (a busy machine may
// need that) and 30 s.
inline Clock::duration patience_of(Clock::time_point start, Deadline deadline) {
  constexpr Clock::duration kLeast = std::chrono::seconds(3);
  constexpr Clock::duration kMost = std::chrono::seconds(30);
  return deadline <= start ? kLeast : std::clamp(deadline - start, kLeast, kMost);
}

// A thread that waits notices a deadline at most this late.
inline constexpr std::chrono::milliseconds kAway{500};

// The deadline of a wait that starts or goes on now. If `deadline` passed long ago, this process
// computed or was suspended then, perhaps with all others, so nothing was waited for. The others
// have their time anew: `patience`.
inline Deadline renewed(Deadline deadline, Clock::duration patience) {
  const auto now = Clock::now();
  return now < deadline || now - deadline < kAway ? deadline : now + patience;
}

// Timeout of reporting a failure and of goodbyes, so that a job's end does not wait for long.
inline constexpr std::chrono::seconds kLastPatience{1};

}  // namespace kolo::inline v0
