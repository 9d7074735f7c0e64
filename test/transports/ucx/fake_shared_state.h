// State that the channels of rank 0 share, over a fake UCX; rank 1 is on another host.
#pragma once

#include <cstdint>

#include "test/transports/ucx/fake_ucx.h"
#include "transports/ucx/shared_state.h"

namespace kolo {

inline ucx::EndpointAddress endpoint_address(const char* identity, std::uint32_t token) {
  ucx::EndpointAddress made;
  made.identity = identity;
  made.token = token;
  return made;
}

struct FakeSharedState : ucx::SharedState {
  FakeSharedState() : SharedState(test::fake_library(), 0, 2) {
    addresses = {endpoint_address("here", 5), endpoint_address("there", 6)};
  }
};

}  // namespace kolo
