// Ranks over one fake machine, each a "process" of its own, and waits with a deadline.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/transports/cuda/fake_driver.h"
#include "transports/cuda/transport.h"
#include "transports/registry.h"

namespace kolo::test {

// Settings of a rank: a driver of its own, and inproc for host memory.
CudaIpcSettings settings_for(const std::shared_ptr<FakeDriver>& driver, int rank);

struct FakeRank {
  std::shared_ptr<FakeDriver> driver;
  std::unique_ptr<Transport> transport;

  StreamChannel& stream_to(int peer) { return *transport->channel(peer).stream(); }
};

using Adjust = std::function<void(int rank, FakeDriver& driver, CudaIpcSettings& settings)>;

// Makes all ranks at once on threads of their own, as required; rethrows the first rank's
// exception.
std::vector<FakeRank> make_fake_ranks(FakeMachine& machine, int size,
                                      const Adjust& adjust = nullptr,
                                      const std::shared_ptr<Store>& store = make_local_store());

// Closes all ranks at once, like ranks that end together.
void close_together(std::vector<FakeRank>& ranks);

// The error of every rank of a job that cannot be made; checks that the job leaks nothing.
std::vector<std::string> errors_of(FakeMachine& machine, int size, const Adjust& adjust,
                                   std::shared_ptr<Store> store = make_local_store());

}  // namespace kolo::test
