// Block pool: blocks move between threads, and no block is handed out twice.
#include "collectives/engine/block_pool.h"

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "test/support/catch.h"

namespace kolo::test {

TEST_CASE("a pool never hands out a block twice, whichever threads give blocks back") {
  using Pool = BlockPool<96>;
  constexpr int kBlocks = 1000;  // more than a thread keeps in its own list
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(Pool::take());
    REQUIRE(std::set<void*>(blocks.begin(), blocks.end()).size() == kBlocks);
    std::thread([&blocks] {
      for (int i = 0; i < kBlocks / 2; ++i) {
        Pool::give(blocks.back());
        blocks.pop_back();
      }
    }).join();
    for (void* block : blocks) Pool::give(block);
    blocks.clear();
  }
}

TEST_CASE("shared objects of a pool outlive the thread that made them") {
  std::shared_ptr<std::vector<int>> made;
  std::thread([&made] {
    using Allocator = PooledAllocator<std::vector<int>>;
    made = std::allocate_shared<std::vector<int>>(Allocator(), 5, 7);
    const auto gone = std::allocate_shared<std::vector<int>>(Allocator(), 1, 1);
  }).join();
  REQUIRE(*made == std::vector<int>(5, 7));
}

}  // namespace kolo::test
