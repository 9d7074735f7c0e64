// Durations for reports: seconds, as doubles.
#pragma once

#include <chrono>

#include "transports/transport.h"

namespace kolo::train {

inline double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

inline double seconds_since(Clock::time_point from) { return seconds_between(from, Clock::now()); }

}  // namespace kolo::train
