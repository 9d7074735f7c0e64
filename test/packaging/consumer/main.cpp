// A user's program: an all-reduce of two ranks that are threads of one process.
#include <array>
#include <cstdio>
#include <memory>
#include <span>
#include <thread>

#include "collectives/communicator.h"
#include "transports/rendezvous.h"

int main() {
  std::shared_ptr<kolo::Store> store = kolo::make_local_store();
  std::array<float, 2> sums{};
  auto run_rank = [&](int rank) {
    kolo::Communicator communicator(rank, 2, store);
    float value = static_cast<float>(rank + 1);
    communicator.all_reduce(std::span<float>(&value, 1));
    sums[static_cast<std::size_t>(rank)] = value;
  };
  std::thread other(run_rank, 1);
  run_rank(0);
  other.join();
  std::printf("both ranks have the sum %g and %g\n", static_cast<double>(sums[0]),
              static_cast<double>(sums[1]));
  return sums[0] == 3 && sums[1] == 3 ? 0 : 1;
}
