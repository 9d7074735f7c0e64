// Parameter server that runs the optimizer: rank 0 holds the parameters. The other ranks push
// gradients and pull the new parameters, in one round trip.
//
//   kolo-run -n 3 example_parameter_server
//
// All workers minimise (x - 3)^2 for every parameter x, each with its own gradients.
#include <cstdio>
#include <cstring>
#include <vector>

#include "collectives/communicator.h"

int main() try {
  auto communicator = kolo::Communicator::from_environment();
  constexpr std::size_t kCount = 10'000;
  constexpr float kLearningRate = 0.25F;
  const kolo::ServerPlan plan{.everywhere = false, .servers = {0}};
  std::vector<float> parameters(kCount, 0.0F);

  // Called for every piece of the average, as soon as all workers have pushed it.
  const auto update = [&](std::size_t first, std::span<std::byte> bytes) {
    const std::size_t count = bytes.size() / sizeof(float);
    std::vector<float> gradients(count);
    std::memcpy(gradients.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < count; ++i) parameters[first + i] -= kLearningRate * gradients[i];
    std::memcpy(bytes.data(), parameters.data() + first, bytes.size());
  };

  const bool is_server = communicator.rank() == 0;
  std::vector<float> gradients(kCount);
  for (int step = 0; step < 20; ++step) {
    for (std::size_t i = 0; i < kCount; ++i) gradients[i] = 2 * (parameters[i] - 3);
    communicator.push_pull(
        {is_server ? nullptr : gradients.data(), kCount, kolo::ElementType::kFloat32},
        {is_server ? nullptr : parameters.data(), kCount, kolo::ElementType::kFloat32},
        kolo::ReduceOp::kAverage, plan, update);
  }
  std::printf("rank %d (%s): x = %.3f\n", communicator.rank(), is_server ? "server" : "worker",
              static_cast<double>(parameters[kCount - 1]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
