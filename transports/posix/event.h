// Wake-up event with a descriptor to poll (eventfd): any thread rings, one thread listens.
#pragma once

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

class Event {
 public:
  Event();

  void ring() noexcept;

  void silence() noexcept;

  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

}  // namespace kolo::inline v0::posix
