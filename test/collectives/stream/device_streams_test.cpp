// Schedules on device streams, between ranks that share a device or have one each, compared with
// the host's sums.
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/math.h"
#include "collectives/reduce/device/on_device.h"
#include "collectives/stream/stream_executor.h"
#include "test/collectives/support/processes.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "transports/cuda/library.h"
#include "transports/cuda/peer_access.h"
#include "transports/cuda/transport.h"

namespace kolo::test {
namespace {

constexpr std::chrono::seconds kPatience{60};

bool has_device() {
  if (device::why_unusable().empty()) return true;
  WARN("skipped: " << device::why_unusable());
  return false;
}

bool has_several_devices() {
  if (!has_device()) return false;
  if (device::count() > 1) return true;
  WARN("skipped: one device here");
  return false;
}

// Whether every device can access the memory of all others.
bool do_devices_reach() {
  if (!has_several_devices()) return false;
  const auto driver = cuda::installed_driver();
  std::vector<std::string> lines;
  for (int number = 0; number < device::count(); ++number)
    lines.push_back(cuda::describe_peer_access(*driver, cuda::Device(driver, number)));
  if (cuda::why_no_peer_access(lines).empty()) return true;
  WARN("skipped: no peer access here");
  return false;
}

float value_of(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 31) % 101);
}

// All ranks all-reduce `count` floats in place, on streams of their own, several times. They share
// the first `devices` devices.
void sum_on_streams(int rank, int size, const std::shared_ptr<Store>& store, int devices,
                    std::string_view algorithm, std::size_t count) {
  const int number = rank % devices;
  const device::ChosenDevice chosen(number);
  CudaIpcSettings settings;
  settings.device = number;
  settings.make_host = [](const TransportRequest& request) {
    return make_transport("inproc", request);
  };
  const auto transport = make_cuda_ipc({rank, size, store, Clock::now() + kPatience}, settings);
  device::KernelMath math({ElementType::kFloat32}, number);
  const device::OwnStream stream;
  std::vector<StreamChannel*> channels;
  for (int peer = 0; peer < size; ++peer)
    channels.push_back(peer == rank ? nullptr : transport->channel(peer).stream());

  PlanRequest request;
  request.ranks = {rank, size, 0, 0, false, {}};
  StreamExecutor executor(
      algorithms()[find_algorithm(Collective::kAllReduce, algorithm)].write(request), channels,
      math);
  std::vector<float> floats(count);
  for (std::size_t i = 0; i < count; ++i) floats[i] = value_of(rank, i);
  const device::Buffer memory(count * sizeof(float));
  for (int round = 0; round < 3; ++round) {
    device::copy(memory.data(), floats.data(), memory.bytes(), stream);
    StreamBinding binding;
    binding.stream = stream;
    binding.in = binding.out = memory.data();
    binding.count = count;
    executor.start(binding);
    const Deadline deadline = Clock::now() + kPatience;
    while (!executor.advance()) {
      transport->progress();
      std::this_thread::yield();
      expect(Clock::now() < deadline, [&] { return "waits for " + executor.describe_wait(); });
    }
    std::vector<float> found(count);
    device::copy(found.data(), memory.data(), memory.bytes(), stream);
    device::wait(stream);
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int other = 0; other < size; ++other) sum += value_of(other, i);
      expect(found[i] == sum, [&] { return "element " + std::to_string(i) + " is wrong"; });
    }
  }
}

// The same through a communicator over `transport`: blocking calls one after the other, then an
// asynchronous one. `devices`: as above; 0: this rank is on the host.
void sum_by_communicator(int rank, int size, const std::shared_ptr<Store>& store,
                         const std::string& transport, int devices, std::size_t count) {
  const bool has_device = devices > 0;
  const int number = has_device ? rank % devices : device::kCurrentDevice;
  const device::ChosenDevice chosen(number);
  CommunicatorOptions options;
  options.transport = transport;
  options.timeout = kPatience;
  if (has_device) options.device = device::on_device(number);
  Communicator communicator(rank, size, store, options);
  std::vector<float> floats(count);
  for (std::size_t i = 0; i < count; ++i) floats[i] = value_of(rank, i);
  if (has_device) {
    const device::OwnStream stream;
    const device::Buffer in(count * sizeof(float));
    const device::Buffer out(count * sizeof(float));
    device::copy(in.data(), floats.data(), in.bytes(), stream);
    const CallOptions on_stream{.stream = DeviceStream{stream}};
    const auto sum = [&] {
      return communicator.all_reduce_async({in.data(), count, ElementType::kFloat32},
                                           {out.data(), count, ElementType::kFloat32},
                                           ReduceOp::kSum, on_stream);
    };
    communicator.all_reduce({in.data(), count, ElementType::kFloat32},
                            {out.data(), count, ElementType::kFloat32}, ReduceOp::kSum, on_stream);
    sum().wait();
    device::copy(floats.data(), out.data(), out.bytes(), stream);
    device::wait(stream);
  } else {
    std::vector<float> out(count);
    for (int round = 0; round < 2; ++round)
      communicator.all_reduce({floats.data(), count, ElementType::kFloat32},
                              {out.data(), count, ElementType::kFloat32}, ReduceOp::kSum);
    floats = out;
  }
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int other = 0; other < size; ++other) sum += value_of(other, i);
    expect(floats[i] == sum, [&] { return "element " + std::to_string(i) + " is wrong"; });
  }
  communicator.barrier();
}

constexpr std::size_t kCounts[] = {1, 5003, 3'000'001};

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
    for (const std::size_t count : kCounts) {
      INFO(size << " ranks, " << job.transport << ", " << job.hosts << " on the host, " << count
                << " floats");
      expect_right(run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
        const bool has_device = rank < size - job.hosts;
        sum_by_communicator(rank, size, store, job.transport, has_device ? devices : 0, count);
      }));
    }
  }
}

void sum_by_schedules(int size, int devices) {
  for (const std::string_view algorithm : {"ring", "two_shot", "recursive_doubling"}) {
    for (const std::size_t count : kCounts) {
      INFO(size << " ranks, " << algorithm << ", " << count << " floats");
      expect_right(run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
        sum_on_streams(rank, size, store, devices, algorithm, count);
      }));
    }
  }
}

}  // namespace

TEST_CASE("ranks that share a device get the host's sums through communicators") {
  if (!has_device()) return;
  sum_by_communicators(3, 1, {{"auto", 0}, {"shm", 0}, {"auto", 1}});
}

TEST_CASE("sums on one device are staged over tcp") {
  if (!has_device()) return;
  sum_by_communicators(3, 1, {{"tcp", 0}, {"tcp", 1}});
}

TEST_CASE("ranks with a device each get the host's sums through communicators") {
  if (!has_several_devices()) return;
  const int devices = device::count();
  for (const int size : {devices, devices + 1})
    sum_by_communicators(size, devices, {{"auto", 0}, {"shm", 0}, {"tcp", 0}, {"auto", 1}});
}

TEST_CASE("ranks with a device each and peer access get the host's sums on streams") {
  if (!do_devices_reach()) return;
  sum_by_schedules(device::count(), device::count());
}

TEST_CASE("pinned memory of ranks with a device is refused on streams and works without") {
  if (!has_device()) return;
  expect_right(run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.timeout = kPatience;
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

TEST_CASE("ranks that share a device run the example") {
  if (!has_device()) return;
  const auto outcomes = run_processes(1, {KOLO_SUM_ON_STREAMS, "3"});
  INFO(outcomes[0].output);
  CHECK(outcomes[0].exit_code == 0);
  for (const char* const rank : {"rank 0", "rank 1", "rank 2"})
    CHECK(outcomes[0].output.find(std::string(rank) + " of 3 on device") != std::string::npos);
  CHECK(outcomes[0].output.find("the sum is 6") != std::string::npos);
}

TEST_CASE("the example exits with 1 if its ranks fail") {
  if (!has_device()) return;
  const auto outcomes =
      run_processes(1, {"/usr/bin/env", "KOLO_TRANSPORT=no_such", KOLO_SUM_ON_STREAMS, "2"});
  INFO(outcomes[0].output);
  CHECK(outcomes[0].exit_code == 1);
}

TEST_CASE("ranks that share a device get the host's sums on its streams") {
  if (!has_device()) return;
  for (const int size : {2, 3, 4}) sum_by_schedules(size, 1);
}

}  // namespace kolo::test
