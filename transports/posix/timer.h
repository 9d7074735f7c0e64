// Timer with a descriptor to poll (timerfd). The descriptor is readable once the set time has come.
#pragma once

#include <chrono>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

class Timer {
 public:
  Timer();

  // Replaces the earlier setting. With a time in the past, the descriptor is readable at once.
  void set(std::chrono::steady_clock::time_point time) noexcept;

  // Makes the descriptor unreadable until the next set().
  void clear() noexcept;

  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
  bool is_set_ = false;
};

}  // namespace kolo::inline v0::posix
