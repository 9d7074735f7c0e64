// An alarm with a descriptor to poll (timerfd): readable from the time on that it was set to.
#pragma once

#include <chrono>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

class Timer {
 public:
  Timer();

  // Replaces what was set before; a time that has passed makes it readable at once.
  void set(std::chrono::steady_clock::time_point time) noexcept;

  // Makes the descriptor unreadable until it is set again.
  void clear() noexcept;

  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
  bool is_set_ = false;
};

}  // namespace kolo::posix
