// Wait for the failure of a job, without the use of a core.
#pragma once

#include <poll.h>

#include "transports/rendezvous.h"

namespace kolo::test {

inline void wait_for_failure(Store& store) {
  constexpr int kAskAgainMs = 10;  // a store without a descriptor
  while (!store.failure()) {
    pollfd watched{store.descriptor(), POLLIN, 0};
    ::poll(&watched, 1, kAskAgainMs);
  }
}

}  // namespace kolo::test
