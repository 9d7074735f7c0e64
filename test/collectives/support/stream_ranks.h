// Ranks as threads with communicators and a stream each, over one played machine: each is a process
// of its own there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/rank_device.h"
#include "test/collectives/support/ranks.h"
#include "test/transports/cuda/fake_driver.h"

namespace kolo::test {

// What a rank brings to its communicators; the driver is a process of `machine`.
std::shared_ptr<const RankDevice> fake_device(FakeMachine& machine,
                                              const std::shared_ptr<FakeDriver>& driver,
                                              int number = 0);

// One rank's end of it.
struct StreamRank {
  Communicator& communicator;
  FakeMachine& machine;
  FakeDriver& driver;
  std::vector<std::byte*>& uploads;
  int device;
  cuda::Stream stream;  // null where the rank has no device

  bool has_device() const { return stream != nullptr; }
  // Device memory that holds a copy of these; freed after the communicator's end.
  std::byte* upload(const std::vector<std::byte>& bytes) const;
  // Waits until the stream has done all that it was given, while the communicator gets on; throws
  // where that takes longer than a minute.
  void synchronize(cuda::Stream of) const;
  void synchronize() const { synchronize(stream); }
  // The same while the communicator does not get on, as by cudaStreamSynchronize.
  void wait_alone() const;
};

// transports_under_test(), without those that serve devices: device memory is staged over these.
std::vector<std::string> staged_transports();

using StreamBody = std::function<void(const StreamRank& rank)>;

struct StreamJob {
  int size = 2;
  FakeMachine::Runs runs = FakeMachine::Runs::kAtOnce;
  int devices = 1;              // of the machine; rank r is on device r % devices
  std::vector<int> hosts = {};  // ranks without a device
  CommunicatorOptions options = {};
  // Before the communicator is made.
  std::function<void(int rank, FakeDriver& driver)> adjust = {};
  // When all communicators have ended.
  std::function<void(int rank, FakeDriver& driver)> at_end = {};
  // Also where ranks failed nothing may be left on the machine.
  bool leaves_nothing = false;
  // A rank may end long before others, and then keeps what they may still have mapped.
  bool ends_apart = false;
  std::vector<int> threads = {};  // ranks of one process, that of the first of them; on one device
};

// What came of every rank; then nothing is left on the machine, and nobody did what nobody may, or
// the last outcome says so.
std::vector<RankOutcome> try_stream_ranks(const StreamJob& job, const StreamBody& body);

// The same; throws what the first rank threw.
void run_stream_ranks(const StreamJob& job, const StreamBody& body);

}  // namespace kolo::test
