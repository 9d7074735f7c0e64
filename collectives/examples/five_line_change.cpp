// Training loop of one process, made distributed by five changes.
//
//   kolo-run -n 3 example_five_line_change
//
// Fits y = 2 x + 1 by gradient descent. Each rank has its own samples.
#include <cstdio>
#include <vector>

#include "collectives/gradient_buckets.h"

int main() try {
  auto world = kolo::Communicator::from_environment();  // 1: join
  std::vector<float> parameters{0, 0}, gradients{0, 0};
  if (world.rank() == 0) parameters = {5, -5};
  world.broadcast(parameters);                                  // 2: the same start
  const float rate = 0.02F * static_cast<float>(world.size());  // 3: a larger batch
  kolo::GradientBuckets buckets(world, gradients, std::vector<std::size_t>{1, 1});
  for (int step = 0; step < 500; ++step) {
    const float x = static_cast<float>((step + world.rank()) % 5) - 2;
    const float error = parameters[0] + parameters[1] * x - (1 + 2 * x);
    gradients[0] = 2 * error;
    buckets.ready(0);  // 4: reduce
    gradients[1] = 2 * error * x;
    buckets.ready(1);
    buckets.wait();  // 5: `gradients` has the averages
    for (std::size_t i = 0; i < 2; ++i) parameters[i] -= rate * gradients[i];
  }
  std::printf("rank %d: y = %.3f x + %.3f\n", world.rank(), static_cast<double>(parameters[1]),
              static_cast<double>(parameters[0]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
