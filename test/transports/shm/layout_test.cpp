// Layout of the shared memory, checked without a peer, and the memory itself.
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/posix/shared_memory.h"
#include "transports/shm/layout.h"

using namespace kolo;
using namespace kolo::shm;

TEST_CASE("an announcement survives packing and unpacking") {
  for (const std::uint64_t frame : {0ULL, 63ULL, 65534ULL, 65535ULL, 65536ULL, 1ULL << 40}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{57}, kLongestSegment}) {
      Announcement a;
      a.tiny_segments = kMostTinySegments;
      a.tiny_words = kFrameBytes / 8;
      a.has_slot = true;
      a.is_answered = bytes % 2 == 1;
      a.slot = kMostSlots - 1;
      a.slot_bytes = bytes;
      Announcement b;
      unpack(pack(a, frame), b);
      CHECK((pack(a, frame) & 0xffff) == frame_tag(frame));
      CHECK(b.tiny_segments == a.tiny_segments);
      CHECK(b.tiny_words == a.tiny_words);
      CHECK(b.has_slot);
      CHECK(b.is_answered == a.is_answered);
      CHECK(b.slot == a.slot);
      CHECK(b.slot_bytes == a.slot_bytes);
    }
  }
}

TEST_CASE("the tag of a frame differs from that of the lap before and from untouched memory") {
  for (std::uint64_t frame = 0; frame < 200'000; ++frame) {
    if (frame < kFrames) REQUIRE(frame_tag(frame) != 0);
    REQUIRE(frame_tag(frame) != frame_tag(frame + kFrames));
  }
}

TEST_CASE("slots are aligned, lie apart, and share no page offset") {
  for (const std::size_t segment :
       {std::size_t{64}, std::size_t{4096}, std::size_t{64 * 1024}, kLongestSegment}) {
    const Layout layout(segment);
    CAPTURE(segment);
    CHECK(layout.slots() >= kMinimumCredit);
    CHECK(2 * layout.bytes() <= (std::size_t{4} << 20) + (64 << 10));  // a region of each rank
    CHECK(Layout::control_offset() % kApart == 0);
    CHECK(Layout::frames_offset() % kApart == 0);
    for (const int first : {0, layout.slots()}) {
      CHECK(layout.slot_offset(first) >= Layout::frames_offset() + kFrames * sizeof(Frame));
      CHECK(layout.slot_offset(first) % kSegmentAlignment == 0);
      CHECK(layout.slot_offset(first + layout.slots() - 1) + layout.stride() <= layout.bytes());
    }
    CHECK(layout.stride() >= segment + kSegmentAlignment);
    std::set<std::size_t> offsets;
    for (int slot = 0; slot < 2 * layout.slots(); ++slot) {
      offsets.insert(layout.slot_offset(slot) % 4096);
    }
    CHECK(offsets.size() == 2 * static_cast<std::size_t>(layout.slots()));
  }
}

TEST_CASE("shared memory beyond the machine's memory is refused before it kills a process") {
  CHECK_THROWS_WITH(posix::SharedMemory(std::size_t{1} << 45, posix::Pages::kPresent),
                    ContainsSubstring("there is no memory for 35184372088832 bytes"));
}

TEST_CASE("shared memory cannot be shrunk by a peer") {
  posix::SharedMemory memory(8192);
  CHECK(::ftruncate(memory.descriptor(), 4096) != 0);
  CHECK(::ftruncate(memory.descriptor(), 16384) != 0);
  memory.bytes()[8191] = std::byte{7};
  posix::SharedMemory other(posix::Descriptor(::dup(memory.descriptor())), 8192);
  CHECK(other.bytes()[8191] == std::byte{7});
}

TEST_CASE("memory that a peer could shrink, or that is too short, is refused") {
  posix::Descriptor loose(::memfd_create("kolo-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(loose.is_open());
  REQUIRE(::ftruncate(loose.get(), 8192) == 0);
  CHECK_THROWS_WITH(posix::SharedMemory(std::move(loose), 8192), ContainsSubstring("not sealed"));
  const posix::SharedMemory shorter(4096);
  CHECK_THROWS_WITH(posix::SharedMemory(posix::Descriptor(::dup(shorter.descriptor())), 8192),
                    ContainsSubstring("4096 bytes long where 8192"));
}
