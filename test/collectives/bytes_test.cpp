// Collectives of byte strings whose lengths only their owners know.
#include "collectives/bytes.h"

#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

// The byte string of rank `rank` in round `round`: empty, short, or longer than a segment.
Bytes saying(int rank, int round) {
  constexpr std::size_t kLengths[] = {0, 5, 1, 300'001};
  Bytes bytes(kLengths[(rank + round) % 4]);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(rank) * 13);
  }
  return bytes;
}

std::vector<Bytes> sayings(int size, int round) {
  std::vector<Bytes> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(saying(rank, round));
  return all;
}

}  // namespace

TEST_CASE("byte strings of any length are gathered, broadcast and sent to all ranks") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 5);
  run_ranks(size, transport, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    for (int round = 0; round < 4; ++round) {
      const std::string where = ", round " + std::to_string(round);
      const Bytes mine = saying(rank, round);
      expect(all_gather_bytes(communicator, mine) == sayings(size, round),
             "all_gather_bytes" + where);
      const int root = round % size;
      const auto gathered = gather_bytes(communicator, mine, root);
      expect(gathered == (rank == root ? sayings(size, round) : std::vector<Bytes>{}),
             "gather_bytes" + where);
      expect(
          broadcast_bytes(communicator, rank == root ? mine : Bytes{}, root) == saying(root, round),
          "broadcast_bytes" + where);
    }
  });
}

}  // namespace kolo::test
