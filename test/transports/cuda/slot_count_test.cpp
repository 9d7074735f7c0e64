// The number of slots between ranks: many if they share a device, within bounds of memory.
#include "transports/cuda/slot_count.h"

#include <vector>

#include "test/support/catch.h"

namespace kolo::cuda {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

int slots_of(int ranks, std::size_t segment_bytes = kMiB) {
  const std::vector<std::string> devices(static_cast<std::size_t>(ranks), "GPU-a GPU-b");
  return slot_count(devices, segment_bytes);
}

}  // namespace

TEST_CASE("ranks that share one device have 32 slots of 1 MiB, fewer if there are many ranks") {
  CHECK(slots_of(2) == 32);
  CHECK(slots_of(3) == 21);
  CHECK(slots_of(4) == 10);
  CHECK(slots_of(8) == kMinimumCredit);
  CHECK(slots_of(2, 4096) == 32);
  CHECK(slots_of(2, 4 * kMiB) == 8);
  CHECK(slots_of(2, 64 * kMiB) == kMinimumCredit);
}

TEST_CASE("the slots of a shared device take at most 256 MiB, unless the minimum takes more") {
  for (std::size_t ranks = 2; ranks <= 64; ++ranks) {
    const auto slots = static_cast<std::size_t>(slots_of(static_cast<int>(ranks)));
    INFO(ranks << " ranks");
    CHECK(slots >= static_cast<std::size_t>(kMinimumCredit));
    CHECK((slots == kMinimumCredit || 2 * ranks * (ranks - 1) * slots * kMiB <= 256 * kMiB));
  }
}

TEST_CASE("ranks on several devices, or on unknown ones, have the fewest slots") {
  const std::vector<std::string> apart = {"GPU-a GPU-b", "GPU-b GPU-a"};
  CHECK(slot_count(apart, kMiB) == kMinimumCredit);
  const std::vector<std::string> mixed = {"GPU-a", ""};
  CHECK(slot_count(mixed, kMiB) == kMinimumCredit);
  CHECK(slot_count({}, kMiB) == kMinimumCredit);
  CHECK(slots_of(1) == kMinimumCredit);
}

}  // namespace kolo::cuda
