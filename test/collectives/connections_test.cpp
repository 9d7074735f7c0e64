// Connections are made only where a schedule needs them: a ring connects neighbours only.
#include <set>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr int kRanks = 16;

std::set<int> connected(const Communicator& communicator) {
  std::set<int> peers;
  for (int peer = 0; peer < kRanks; ++peer) {
    if (peer == communicator.rank()) continue;
    if (communicator.peer_statistics(peer).channel.connections > 0) peers.insert(peer);
  }
  return peers;
}

}  // namespace

TEST_CASE("a ring connects neighbouring ranks only") {
  const std::string transport = GENERATE("tcp", "shm");
  CAPTURE(transport);
  run_ranks(kRanks, transport, [](Communicator& communicator) {
    const int rank = communicator.rank();
    const std::set<int> neighbours = {(rank + 1) % kRanks, (rank + kRanks - 1) % kRanks};
    for (const int peer : connected(communicator)) {
      expect(neighbours.contains(peer), "measuring at the start needs neighbours at most");
    }
    std::vector<float> data(10'000, 1.0F);
    for (int i = 0; i < 5; ++i) {
      communicator.all_reduce(data, ReduceOp::kMax, {.algorithm = "ring"});
    }
    expect(connected(communicator) == neighbours, "a ring needs its neighbours");
  });
}

}  // namespace kolo::test
