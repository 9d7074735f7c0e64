// Ranks as threads of one process: the shortest complete example of a collective.
//
//   example_sum_in_threads [RANKS]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/communicator.h"

namespace {

void run_rank(int rank, int size, const std::shared_ptr<kolo::Store>& store) {
  kolo::Communicator communicator(rank, size, store);
  std::vector<float> data(1000, static_cast<float>(rank + 1));
  communicator.all_reduce(std::span<float>(data));
  std::printf("rank %d of %d over %s: the sum is %g\n", rank, size,
              std::string(communicator.transport()).c_str(), static_cast<double>(data[0]));
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 4;
  if (size < 1) {
    std::fprintf(stderr, "RANKS must be a number of at least 1, not '%s'\n", argv[1]);
    return 2;
  }
  const auto store = kolo::make_local_store();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(run_rank, rank, size, store);
  for (std::thread& rank : ranks) rank.join();
}
