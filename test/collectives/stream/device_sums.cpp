#include "test/collectives/stream/device_sums.h"

#include <thread>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/math.h"
#include "collectives/reduce/device/on_device.h"
#include "collectives/stream/stream_executor.h"
#include "test/collectives/support/ranks.h"
#include "transports/cuda/transport.h"
#include "transports/store/all_gather.h"

namespace kolo::test {

namespace {

float value_of(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 31) % 101);
}

std::vector<float> values_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(rank, i);
  return values;
}

void expect_sums(const std::vector<float>& found, int size) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += value_of(rank, i);
    expect(found[i] == sum, [&] { return "element " + std::to_string(i) + " is wrong"; });
  }
}

// Two all-reduces on a stream of the rank's device. Returns the result of the second.
std::vector<float> sum_on_device(Communicator& communicator, std::size_t count) {
  std::vector<float> floats = values_of(communicator.rank(), count);
  const device::OwnStream stream;
  const device::Buffer in(count * sizeof(float));
  const device::Buffer out(count * sizeof(float));
  device::copy(in.data(), floats.data(), in.bytes(), stream);
  const CallOptions on_stream{.stream = DeviceStream{stream}};
  const ConstBuffer from{in.data(), count, ElementType::kFloat32};
  const Buffer into{out.data(), count, ElementType::kFloat32};
  communicator.all_reduce(from, into, ReduceOp::kSum, on_stream);
  communicator.all_reduce_async(from, into, ReduceOp::kSum, on_stream).wait();
  device::copy(floats.data(), out.data(), out.bytes(), stream);
  device::wait(stream);
  communicator.barrier();
  return floats;
}

std::vector<float> sum_on_host(Communicator& communicator, std::size_t count) {
  const std::vector<float> in = values_of(communicator.rank(), count);
  std::vector<float> out(count);
  for (int round = 0; round < 2; ++round) {
    communicator.all_reduce({in.data(), count, ElementType::kFloat32},
                            {out.data(), count, ElementType::kFloat32}, ReduceOp::kSum);
  }
  communicator.barrier();
  return out;
}

}  // namespace

void sum_by_schedule(const SumRank& job, std::string_view host, std::string_view algorithm,
                     std::size_t count) {
  const int number = job.rank % job.devices;
  const device::ChosenDevice chosen(number);
  const Deadline deadline = Clock::now() + kDevicePatience;
  CudaIpcSettings settings;
  settings.device = number;
  settings.make_host = [host](const TransportRequest& request) {
    return make_transport(host, request);
  };
  const auto transport = make_cuda_ipc({job.rank, job.size, job.store, deadline}, settings);
  device::KernelMath math({ElementType::kFloat32}, number);
  const device::OwnStream stream;
  std::vector<StreamChannel*> channels;
  for (int peer = 0; peer < job.size; ++peer)
    channels.push_back(peer == job.rank ? nullptr : transport->channel(peer).stream());

  PlanRequest request;
  request.ranks = {job.rank, job.size, 0, 0, false, {}};
  StreamExecutor executor(
      algorithms()[find_algorithm(Collective::kAllReduce, algorithm)].write(request), channels,
      math);
  const std::vector<float> floats = values_of(job.rank, count);
  const device::Buffer memory(count * sizeof(float));
  for (int round = 0; round < 3; ++round) {
    device::copy(memory.data(), floats.data(), memory.bytes(), stream);
    StreamBinding binding;
    binding.stream = stream;
    binding.in = binding.out = memory.data();
    binding.count = count;
    executor.start(binding);
    while (!executor.advance()) {
      transport->progress();
      std::this_thread::yield();
      expect(Clock::now() < deadline, [&] { return "waits for " + executor.describe_wait(); });
    }
    std::vector<float> found(count);
    device::copy(found.data(), memory.data(), memory.bytes(), stream);
    device::wait(stream);
    expect_sums(found, job.size);
  }
  exchange(*job.store, job.rank, job.size, "finished", "", deadline, "finish all streams");
}

void sum_by_communicator(const SumRank& job, const std::string& transport, std::size_t count) {
  const bool has_device = job.devices > 0;
  const int number = has_device ? job.rank % job.devices : device::kCurrentDevice;
  const device::ChosenDevice chosen(number);
  CommunicatorOptions options;
  options.transport = transport;
  options.timeout = kDevicePatience;
  if (has_device) options.device = device::on_device(number);
  Communicator communicator(job.rank, job.size, job.store, options);
  expect_sums(has_device ? sum_on_device(communicator, count) : sum_on_host(communicator, count),
              job.size);
}

}  // namespace kolo::test
