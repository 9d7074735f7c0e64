// Ranks as processes, on one host or many; the launcher's environment gives rank and size.
//
//   kolo-run -n 4 example_sum_in_processes
//
// A progress thread of the communicator sums one buffer while the program fills the next. Without
// that thread an operation moves only while the program is inside a call of the communicator, or in
// wait(), test() or progress().
#include <algorithm>
#include <cstdio>
#include <vector>

#include "collectives/communicator.h"

int main() try {
  kolo::CommunicatorOptions options;
  options.progress_thread = true;
  // Declared before the communicator: if an exception ends this function, its thread may still
  // write here.
  std::vector<float> first(100'000), second(100'000);
  auto communicator = kolo::Communicator::from_environment(options);
  const auto mine = static_cast<float>(communicator.rank() + 1);

  std::ranges::fill(first, mine);
  kolo::Work work = communicator.all_reduce_async(first, kolo::ReduceOp::kAverage);
  std::ranges::fill(second, 10 * mine);
  work.wait();
  communicator.all_reduce(std::span<float>(second), kolo::ReduceOp::kMax);

  std::printf("rank %d of %d: the average is %g, ten times the largest is %g\n",
              communicator.rank(), communicator.size(), static_cast<double>(first[0]),
              static_cast<double>(second[0]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
