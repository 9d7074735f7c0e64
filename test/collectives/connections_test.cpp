// Connections are made where a schedule needs them: a ring joins neighbours and nobody else.
#include <set>
#include <string>
#include <vector>

#include "test/collectives/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr int kRanks = 16;

// Whom measuring the channels at the start may join to `rank`: two ranks of a host, and where a
// host has more ranks than cores all of them by a dissemination barrier (collectives/probe.h).
std::set<int> met_at_the_start(int rank) {
  std::set<int> peers;
  for (int distance = 1; distance < kRanks; distance *= 2) {
    peers.insert((rank + distance) % kRanks);
    peers.insert((rank + kRanks - distance) % kRanks);
  }
  return peers;
}

std::set<int> connected(const Communicator& communicator) {
  std::set<int> peers;
  for (int peer = 0; peer < kRanks; ++peer) {
    if (peer == communicator.rank()) continue;
    if (communicator.peer_statistics(peer).channel.connections > 0) peers.insert(peer);
  }
  return peers;
}

}  // namespace

TEST_CASE("a ring of ranks that tcp joins connects neighbours and nobody else") {
  run_ranks(kRanks, "tcp", [](Communicator& communicator) {
    const int rank = communicator.rank();
    const std::set<int> neighbours = {(rank + 1) % kRanks, (rank + kRanks - 1) % kRanks};
    std::vector<float> data(10'000, 1.0F);
    for (int i = 0; i < 5; ++i) {
      communicator.all_reduce(data.data(), data.data(), data.size(), ElementType::kFloat32,
                              ReduceOp::kMax, {.algorithm = "ring"});
    }
    const std::set<int> after = connected(communicator);
    for (const int peer : after) {
      expect(met_at_the_start(rank).count(peer) == 1, "nobody needed rank " + std::to_string(peer));
    }
    for (const int peer : neighbours) {
      expect(after.count(peer) == 1, "a ring needs rank " + std::to_string(peer));
    }
    expect(after.size() < kRanks - 1, "some ranks were never joined");
  });
}

}  // namespace kolo::test
