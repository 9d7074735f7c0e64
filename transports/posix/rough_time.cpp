#include "transports/posix/rough_time.h"

#include <time.h>

namespace kolo::posix {
namespace {

std::chrono::nanoseconds to_duration(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::chrono::nanoseconds tick() {
  timespec time{};
  ::clock_getres(CLOCK_MONOTONIC_COARSE, &time);
  return to_duration(time);
}

}  // namespace

std::chrono::steady_clock::time_point rough_time() {
  static const std::chrono::nanoseconds kTick = tick();
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return std::chrono::steady_clock::time_point(to_duration(time) + kTick);
}

}  // namespace kolo::posix
