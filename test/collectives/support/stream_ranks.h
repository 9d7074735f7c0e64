// Ranks as threads with a communicator and a stream each, over one fake machine. On that machine
// each rank is a process.
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

// The device of a rank; the driver is a process of `machine`.
std::shared_ptr<const RankDevice> fake_device(FakeMachine& machine,
                                              const std::shared_ptr<FakeDriver>& driver,
                                              int number = 0);

// A rank as the body of a test sees it.
struct StreamRank {
  Communicator& communicator;
  FakeMachine& machine;
  FakeDriver& driver;
  std::vector<std::byte*>& uploads;
  int device;
  cuda::Stream stream;  // null if the rank has no device

  bool has_device() const { return stream != nullptr; }
  // Device memory with a copy of these bytes. It is freed after the communicator's end.
  std::byte* upload(const std::vector<std::byte>& bytes) const;
  // Waits until the stream has finished all enqueued work, and makes progress meanwhile. Throws
  // after a minute.
  void synchronize(cuda::Stream of) const;
  void synchronize() const { synchronize(stream); }
  // The same without progress of the communicator, as cudaStreamSynchronize waits.
  void wait_alone() const;
};

// transports_under_test() without those that serve devices: device memory is staged over these.
std::vector<std::string> staged_transports();

using StreamBody = std::function<void(const StreamRank& rank)>;

struct StreamJob {
  int size = 2;
  FakeMachine::Runs runs = FakeMachine::Runs::kAtOnce;
  int devices = 1;              // devices of the machine; rank r is on device r % devices
  std::vector<int> hosts = {};  // ranks without a device
  CommunicatorOptions options = {};
  // Called before the communicator is made.
  std::function<void(int rank, FakeDriver& driver)> adjust = {};
  // Called when all communicators have ended.
  std::function<void(int rank, FakeDriver& driver)> at_end = {};
  // Nothing may be left on the machine, even if ranks failed.
  bool leaves_nothing = false;
  // A rank may end long before others. It then leaves memory that they may still have mapped.
  bool ends_apart = false;
  // ranks that share the process of the first of them; on one device
  std::vector<int> threads = {};
};

// The outcome of every rank. If something is left on the machine or a rule of the driver was
// violated, one more outcome reports that.
std::vector<RankOutcome> try_stream_ranks(const StreamJob& job, const StreamBody& body);

// The same; throws the error of the first failed rank.
void run_stream_ranks(const StreamJob& job, const StreamBody& body);

}  // namespace kolo::test
