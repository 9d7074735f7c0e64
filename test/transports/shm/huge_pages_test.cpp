// Shared memory uses huge pages if the kernel has some.
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "test/support/catch.h"
#include "transports/posix/shared_memory.h"

namespace kolo::test {
namespace {

using posix::Pages;
using posix::SharedMemory;

constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE

// Bytes in huge pages of the mapping that begins at `address`.
std::size_t huge_bytes_at(const void* address) {
  char first[32];
  std::snprintf(first, sizeof first, "%lx-", reinterpret_cast<unsigned long>(address));
  std::ifstream file("/proc/self/smaps");
  bool is_there = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(first)) is_there = true;
    if (is_there && line.starts_with("ShmemPmdMapped:")) return std::stoul(line.substr(15)) * 1024;
  }
  return 0;
}

// Whether the kernel makes huge pages of shared memory on request: not before Linux 6.1, not if
// they are disabled, and not if none is free.
bool has_huge_pages() {
  const SharedMemory trial(kHuge);
  void* const room = ::mmap(nullptr, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const aligned =
      static_cast<std::byte*>(room) + -reinterpret_cast<std::uintptr_t>(room) % kHuge;
  ::mmap(aligned, kHuge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, trial.descriptor(), 0);
  *aligned = std::byte{1};
  const bool is_made = ::madvise(aligned, kHuge, kCollapse) == 0;
  ::munmap(room, 2 * kHuge);
  return is_made;
}

}  // namespace

TEST_CASE("shared memory with Pages::kPresent uses huge pages at both ranks") {
  if (!has_huge_pages()) {
    WARN("skipped: the kernel makes no huge pages of shared memory here");
    return;
  }
  const std::size_t bytes = 2 * kHuge + 5000;
  const SharedMemory mine(bytes, Pages::kPresent);
  CHECK(mine.bytes().size() == bytes);
  CHECK(huge_bytes_at(mine.bytes().data()) == 2 * kHuge);
  std::memset(mine.bytes().data(), 1, bytes);
  const SharedMemory theirs(posix::Descriptor(::dup(mine.descriptor())), bytes, Pages::kPresent);
  CHECK(huge_bytes_at(theirs.bytes().data()) == 2 * kHuge);
  CHECK(theirs.bytes()[bytes - 1] == std::byte{1});
  // A part that becomes private takes its page out of the huge one, and no other page.
  CHECK(posix::make_private(mine.bytes().subspan(kHuge, 100)));
  mine.bytes()[kHuge] = std::byte{2};
  mine.bytes()[0] = std::byte{3};
  CHECK(theirs.bytes()[kHuge] == std::byte{1});
  CHECK(theirs.bytes()[0] == std::byte{3});
}

TEST_CASE("long shared memory lies at no multiple of 64 MiB from the earlier mapping") {
  constexpr std::uintptr_t kAlike = std::uintptr_t{64} << 20;
  const SharedMemory mine(2 * kHuge, Pages::kPresent);
  for (int i = 0; i < 3; ++i) {
    const SharedMemory theirs(posix::Descriptor(::dup(mine.descriptor())), 2 * kHuge,
                              Pages::kPresent);
    const auto apart = reinterpret_cast<std::uintptr_t>(theirs.bytes().data()) -
                       reinterpret_cast<std::uintptr_t>(mine.bytes().data());
    CHECK(apart % kAlike != 0);
    CHECK(apart % kHuge == 0);
  }
}

TEST_CASE("shared memory of any length is mapped completely, and unmapped") {
  for (const std::size_t bytes : {std::size_t{1}, kHuge - 1, kHuge, kHuge + 1, 3 * kHuge - 4096}) {
    const SharedMemory memory(bytes, Pages::kPresent);
    REQUIRE(memory.bytes().size() == bytes);
    CHECK(memory.bytes()[0] == std::byte{0});
    memory.bytes()[bytes - 1] = std::byte{1};
  }
}

}  // namespace kolo::test
