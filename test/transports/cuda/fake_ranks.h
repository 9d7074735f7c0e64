// Ranks over one played machine, each a "process" of its own, and waiting that ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/transports/cuda/fake_driver.h"
#include "transports/cuda/transport.h"
#include "transports/registry.h"

namespace kolo::test {

// What a rank is made with: a driver of its own, the threads' transport for host memory.
CudaIpcSettings settings_for(const std::shared_ptr<FakeDriver>& driver, int rank);

struct FakeRank {
  std::shared_ptr<FakeDriver> driver;
  std::unique_ptr<Transport> transport;

  StreamChannel& stream_to(int peer) { return *transport->channel(peer).stream(); }
};

using Adjust = std::function<void(int rank, FakeDriver& driver, CudaIpcSettings& settings)>;

// All made, at once on threads of their own, as they must be; throws what the first rank threw.
std::vector<FakeRank> make_fake_ranks(FakeMachine& machine, int size,
                                      const Adjust& adjust = nullptr,
                                      const std::shared_ptr<Store>& store = make_local_store());

// All closed at once, as ranks that end together are.
void close_together(std::vector<FakeRank>& ranks);

// What every rank of a job that cannot be made says, and what such a job leaves behind.
std::vector<std::string> errors_of(FakeMachine& machine, int size, const Adjust& adjust,
                                   std::shared_ptr<Store> store = make_local_store());

}  // namespace kolo::test
