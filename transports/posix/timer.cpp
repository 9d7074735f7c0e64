#include "transports/posix/timer.h"

#include <sys/timerfd.h>
#include <algorithm>

namespace kolo::inline v0::posix {

namespace {

constexpr std::chrono::nanoseconds::rep kPerSecond = 1'000'000'000;

}  // namespace

Timer::Timer() : descriptor_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!descriptor_.is_open()) throw_system("timerfd_create");
}

void Timer::set(std::chrono::steady_clock::time_point time) noexcept {
  const std::chrono::nanoseconds since_boot = time.time_since_epoch();
  const auto count =
      std::max<std::chrono::nanoseconds::rep>(since_boot.count(), 1);  // 0 would disarm
  itimerspec alarm{};
  alarm.it_value = {static_cast<time_t>(count / kPerSecond), static_cast<long>(count % kPerSecond)};
  ::timerfd_settime(descriptor_.get(), TFD_TIMER_ABSTIME, &alarm, nullptr);
  is_set_ = true;
}

void Timer::clear() noexcept {
  if (!is_set_) return;
  const itimerspec never{};
  ::timerfd_settime(descriptor_.get(), 0, &never, nullptr);
  is_set_ = false;
}

}  // namespace kolo::inline v0::posix
