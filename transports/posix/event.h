// A doorbell with a descriptor to poll (eventfd): any thread rings, one listens.
#pragma once

#include "transports/posix/descriptor.h"

namespace kolo::posix {

class Event {
 public:
  Event();

  void ring() noexcept;

  // Makes the descriptor unreadable again.
  void silence() noexcept;

  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
};

}  // namespace kolo::posix
