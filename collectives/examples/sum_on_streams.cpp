// Ranks as threads, each with a stream of its own on a device: the host enqueues and continues.
//
//   example_sum_on_streams [RANKS]
//
// Ranks use one device each, or share devices if there are fewer. Exits with 1 if a rank fails.
// Threads keep the example short. Real jobs run a process for each rank, as
// collectives/communicator.h explains.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/on_device.h"

namespace {

constexpr std::size_t kCount = 1'000'000;

// Returns false if the rank fails.
bool run_rank(int rank, int size, const std::shared_ptr<kolo::Store>& store) try {
  const int number = rank % kolo::device::count();
  const kolo::device::ChosenDevice chosen(number);
  kolo::CommunicatorOptions options;
  options.device = kolo::device::on_device(number);
  kolo::Communicator communicator(rank, size, store, options);

  std::vector<float> data(kCount, static_cast<float>(rank + 1));
  const std::size_t bytes = kCount * sizeof(float);
  const kolo::device::Buffer memory(bytes);
  const kolo::device::OwnStream stream;
  const kolo::CallOptions on_stream{.stream = kolo::DeviceStream{stream}};
  kolo::device::copy(memory.data(), data.data(), bytes, stream);
  kolo::Work work = communicator.all_reduce_async(
      {memory.data(), kCount, kolo::ElementType::kFloat32}, kolo::ReduceOp::kSum, on_stream);
  kolo::device::copy(data.data(), memory.data(), bytes, stream);  // the stream's order is enough
  work.wait();  // also throws if a rank was lost; the stream alone would wait forever
  kolo::device::wait(stream);
  communicator.barrier();  // CUDA may wait for the other ranks' streams before it frees memory
  std::printf("rank %d of %d on device %d: the sum is %g\n", rank, size, number,
              static_cast<double>(data[0]));
  return true;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2;
  if (size < 1) {
    std::fprintf(stderr, "RANKS must be a number of at least 1, not '%s'\n", argv[1]);
    return 2;
  }
  if (!kolo::device::why_unusable().empty()) {
    std::fprintf(stderr, "%s\n", kolo::device::why_unusable().c_str());
    return 1;
  }
  const auto store = kolo::make_local_store();
  std::atomic<bool> has_failed = false;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([rank, size, &store, &has_failed] {
      if (!run_rank(rank, size, store)) has_failed = true;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return has_failed ? 1 : 0;
}
