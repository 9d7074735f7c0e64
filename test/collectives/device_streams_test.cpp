// Schedules on the streams of a device, between ranks that share it: against the host's sums.
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithm_table.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/math.h"
#include "collectives/stream_executor.h"
#include "test/collectives/ranks.h"
#include "test/support/catch.h"
#include "transports/cuda_ipc.h"

namespace kolo::test {
namespace {

constexpr std::chrono::seconds kPatience{60};

bool has_device() {
  if (device::why_unusable().empty()) return true;
  WARN("skipped: " << device::why_unusable());
  return false;
}

float value_of(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 31) % 101);
}

// All-reduces as many floats, in place, by all ranks on streams of their own, some times in a row.
void sum_on_streams(int rank, int size, const std::shared_ptr<Store>& store,
                    std::string_view algorithm, std::size_t count) {
  CudaIpcSettings settings;
  settings.make_host = [](const TransportRequest& request) {
    return make_transport("inproc", request);
  };
  const auto transport = make_cuda_ipc({rank, size, store, Clock::now() + kPatience}, settings);
  device::KernelMath math({ElementType::kFloat32});
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
      expect(Clock::now() < deadline, "waits for " + executor.describe_wait());
    }
    std::vector<float> found(count);
    device::copy(found.data(), memory.data(), memory.bytes(), stream);
    device::wait(stream);
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int other = 0; other < size; ++other) sum += value_of(other, i);
      expect(found[i] == sum, "element " + std::to_string(i) + " is wrong");
    }
  }
}

}  // namespace

TEST_CASE("ranks that share a device sum on its streams what the host sums") {
  if (!has_device()) return;
  for (const int size : {2, 3, 4}) {
    for (const std::string_view algorithm : {"ring", "two_shot", "recursive_doubling"}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{5003}, std::size_t{3'000'001}}) {
        INFO(size << " ranks, " << algorithm << ", " << count << " floats");
        const auto outcomes = run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
          sum_on_streams(rank, size, store, algorithm, count);
        });
        for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
      }
    }
  }
}

}  // namespace kolo::test
