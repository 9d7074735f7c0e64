// Ranks as threads of one process on devices, which share a device's context: collectives compared
// with the host's sums. Jobs run a process for each rank (device_processes_test.cpp); read the
// results of that test first.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "collectives/reduce/device/on_device.h"
#include "test/collectives/stream/device_sums.h"
#include "test/collectives/support/devices.h"
#include "test/collectives/support/processes.h"
#include "test/collectives/support/ranks.h"
#include "transports/cuda/library.h"
#include "transports/cuda/peer_access.h"

namespace kolo::test {
namespace {

// The streams of all ranks share the context's hardware queues, 8 unless the environment says
// otherwise before CUDA starts. A stream that shares a queue with a waiting stream waits, too.
bool has_device_for_threads() {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  return has_device();
}

bool has_several_devices_for_threads() { return has_device_for_threads() && has_several_devices(); }

// Whether every device can access the memory of all others.
bool do_devices_reach() {
  if (!has_several_devices_for_threads()) return false;
  const auto driver = cuda::installed_driver();
  std::vector<std::string> lines;
  for (int number = 0; number < device::count(); ++number)
    lines.push_back(cuda::describe_peer_access(*driver, cuda::Device(driver, number)));
  if (cuda::why_no_peer_access(lines).empty()) return true;
  WARN("skipped: no peer access here");
  return false;
}

void expect_right(const std::vector<RankOutcome>& outcomes) {
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.text.empty());
  }
}

struct Job {
  const char* transport;
  int hosts;  // the last ranks, which have no device
};

void sum_by_communicators(int size, int devices, const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    for (const std::size_t count : kSumCounts) {
      INFO(size << " ranks, " << job.transport << ", " << job.hosts << " on the host, " << count
                << " floats");
      expect_right(run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
        const bool has_device = rank < size - job.hosts;
        sum_by_communicator({rank, size, store, has_device ? devices : 0}, job.transport, count);
      }));
    }
  }
}

void sum_by_schedules(int size, int devices) {
  for (const std::string_view algorithm : kSumAlgorithms) {
    for (const std::size_t count : kSumCounts) {
      INFO(size << " ranks, " << algorithm << ", " << count << " floats");
      expect_right(run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
        sum_by_schedule({rank, size, store, devices}, "inproc", algorithm, count);
      }));
    }
  }
}

}  // namespace

TEST_CASE("ranks that share a device get the host's sums through communicators", "[threads]") {
  if (!has_device_for_threads()) return;
  sum_by_communicators(3, 1, {{"auto", 0}, {"shm", 0}, {"auto", 1}});
}

TEST_CASE("sums on one device are staged over tcp", "[threads]") {
  if (!has_device_for_threads()) return;
  sum_by_communicators(3, 1, {{"tcp", 0}, {"tcp", 1}});
}

TEST_CASE("ranks with a device each get the host's sums through communicators", "[threads]") {
  if (!has_several_devices_for_threads()) return;
  const int devices = device::count();
  for (const int size : {devices, devices + 1})
    sum_by_communicators(size, devices, {{"auto", 0}, {"shm", 0}, {"tcp", 0}, {"auto", 1}});
}

TEST_CASE("ranks with a device each and peer access get the host's sums on streams", "[threads]") {
  if (!do_devices_reach()) return;
  sum_by_schedules(device::count(), device::count());
}

TEST_CASE("pinned memory of ranks with a device is refused on streams and works without",
          "[threads]") {
  if (!has_device_for_threads()) return;
  expect_right(run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.timeout = kDevicePatience;
    options.device = device::on_device(0);
    Communicator communicator(rank, 2, store, options);
    const device::OwnStream stream;
    std::vector<float> floats(5003, 1);
    const std::vector<float> before = floats;
    const device::Pinned pinned(floats.data(), floats.size() * sizeof(float));
    const auto refused = outcome_of(
        [&] { communicator.all_reduce(floats, ReduceOp::kSum, {.stream = DeviceStream{stream}}); });
    expect(refused.is_bug && refused.text.find("host memory") != std::string::npos,
           [&] { return "on a stream: " + refused.text; });
    expect(floats == before, "what was refused was touched");
    communicator.all_reduce(std::span(floats));
    expect(floats == std::vector<float>(5003, 2), "a sum of the host's is wrong");
    communicator.barrier();
  }));
}

TEST_CASE("ranks that share a device run the example", "[threads]") {
  if (!has_device_for_threads()) return;
  const auto outcomes = run_processes(1, {KOLO_SUM_ON_STREAMS, "3"});
  INFO(outcomes[0].output);
  CHECK(outcomes[0].exit_code == 0);
  for (const char* const rank : {"rank 0", "rank 1", "rank 2"})
    CHECK(outcomes[0].output.find(std::string(rank) + " of 3 on device") != std::string::npos);
  CHECK(outcomes[0].output.find("the sum is 6") != std::string::npos);
}

TEST_CASE("the example exits with 1 if its ranks fail", "[threads]") {
  if (!has_device_for_threads()) return;
  const auto outcomes =
      run_processes(1, {"/usr/bin/env", "KOLO_TRANSPORT=no_such", KOLO_SUM_ON_STREAMS, "2"});
  INFO(outcomes[0].output);
  CHECK(outcomes[0].exit_code == 1);
}

TEST_CASE("ranks that share a device get the host's sums on its streams", "[threads]") {
  if (!has_device_for_threads()) return;
  for (const int size : {2, 3, 4}) sum_by_schedules(size, 1);
}

}  // namespace kolo::test
