// Memory of one tcp channel for its segments, without a socket.
#include "transports/tcp/segment_memory.h"

#include <cstring>
#include <deque>
#include <random>
#include <utility>

#include "test/support/catch.h"

using kolo::tcp::SegmentMemory;

namespace {

constexpr std::size_t kSegment = 256 * 1024;
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBeside = 24 * 1024;  // cells, and the padding between slots

std::byte* take(SegmentMemory& memory, std::size_t bytes) {
  std::byte* const slot = memory.find(bytes, 0);
  if (slot != nullptr) memory.take_slot();
  return slot;
}

}  // namespace

TEST_CASE("the memory never exceeds the larger of its use and 1 MiB") {
  SegmentMemory memory(kSegment);
  CHECK(memory.bytes() == 0);
  memory.find(56, 4);
  CHECK(memory.bytes() <= kBeside);
  CHECK(memory.begin_view(0) != nullptr);
  memory.begin_view(kSegment);
  memory.end_view();
  for (int i = 0; i < 3; ++i) {
    for (int slots = 0; slots <= i; ++slots) REQUIRE(take(memory, kSegment) != nullptr);
    CHECK(memory.bytes() <= (2 + i) * kSegment + kBeside);
    for (int slots = 0; slots <= i; ++slots) memory.give_slot_back();
  }
  for (std::size_t i = 0; i < SegmentMemory::kSlots; ++i)
    REQUIRE(take(memory, kSegment) != nullptr);
  CHECK(take(memory, kSegment) == nullptr);
  CHECK(memory.find(56, 4) != nullptr);
  for (std::size_t i = 0; i < SegmentMemory::kSlots; ++i) memory.give_slot_back();
  CHECK(memory.bytes() <= kMiB + kBeside);
}

TEST_CASE("at most 12 MiB are held with segments of 2 MiB") {
  SegmentMemory memory(kSegment);
  memory.begin_view(2 * kMiB);
  while (take(memory, 2 * kMiB) != nullptr) continue;
  CHECK(memory.bytes() <= 12 * kMiB + kBeside);
}

TEST_CASE("a long view replaces idle slots, and slots replace an idle long view") {
  SegmentMemory memory(kSegment);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(take(memory, kSegment) != nullptr);
    memory.give_slot_back();
    memory.begin_view(2 * kSegment);
    CHECK(memory.bytes() <= kMiB + kBeside);
    memory.end_view();
    REQUIRE(take(memory, kSegment) != nullptr);
    CHECK(memory.bytes() <= kMiB + kBeside);
    memory.give_slot_back();
    memory.begin_view(kSegment);
    memory.end_view();
    CHECK(memory.bytes() <= kMiB + kBeside);
  }
}

TEST_CASE("memory in use stays unchanged when more is taken") {
  SegmentMemory memory(kSegment);
  std::byte* const slot = take(memory, kSegment);
  std::memset(slot, 1, kSegment);
  std::byte* const view = memory.begin_view(2 * kSegment);
  std::memset(view, 2, 2 * kSegment);
  CHECK(memory.begin_view(2 * kSegment) == view);  // asked again while data is missing
  std::byte* const longer = take(memory, 3 * kSegment);
  std::memset(longer, 3, 3 * kSegment);
  CHECK((slot[0] == std::byte{1} && slot[kSegment - 1] == std::byte{1}));
  CHECK((view[0] == std::byte{2} && view[2 * kSegment - 1] == std::byte{2}));
  memory.give_slot_back();
  CHECK((longer[0] == std::byte{3} && longer[3 * kSegment - 1] == std::byte{3}));
  memory.give_slot_back();
}

TEST_CASE("slots of any length are returned in the order in which they were taken") {
  constexpr unsigned kSeed = 7;
  INFO("seed " << kSeed);
  std::mt19937 random(kSeed);
  SegmentMemory memory(kSegment);
  std::deque<std::pair<std::byte*, std::size_t>> taken;
  std::uint8_t written = 0;
  std::uint8_t read = 0;
  const auto give_back = [&] {
    const auto [slot, bytes] = taken.front();
    REQUIRE(slot[0] == std::byte{read});
    REQUIRE(slot[bytes - 1] == std::byte{read});
    ++read;
    taken.pop_front();
    memory.give_slot_back();
  };
  for (int i = 0; i < 2000; ++i) {
    const std::size_t bytes = 4096 + random() % (i < 1000 ? kSegment / 2 : kMiB);
    if (random() % 2 == 0 && !taken.empty()) give_back();
    std::byte* const slot = take(memory, bytes);
    if (slot == nullptr) continue;
    slot[0] = slot[bytes - 1] = std::byte{written++};
    taken.emplace_back(slot, bytes);
  }
  while (!taken.empty()) give_back();
}
