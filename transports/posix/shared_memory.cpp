#include "transports/posix/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "transports/error.h"
#include "transports/posix/host/cgroup.h"

namespace kolo::inline v0::posix {

namespace {

// MFD_NOEXEC_SEAL (Linux 6.3). Some systems refuse a memfd without it; older kernels do not know
// it.
constexpr unsigned kNoExecuteSeal = 8;

// MADV_POPULATE_WRITE (Linux 5.14). Older kernels return EINVAL; pages are then allocated on touch.
constexpr int kPopulateWrite = 23;

// MADV_COLLAPSE (Linux 6.1): makes huge pages now, whatever the setting shmem_enabled.
constexpr int kCollapse = 25;

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kAlike = std::size_t{64} << 20;

Descriptor make_memfd() {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor descriptor(::memfd_create("kolo", flags | kNoExecuteSeal));
  if (!descriptor.is_open() && errno == EINVAL) {
    descriptor = Descriptor(::memfd_create("kolo", flags));
  }
  if (!descriptor.is_open()) throw_system("memfd_create");
  return descriptor;
}

// Like mmap(), with a chosen alignment for long memory (`is_long`).
//
// Huge pages need a mapping aligned as in its file. Two mappings made in a row must not lie a
// multiple of kAlike apart. Otherwise a loop over both took two to five times as long on Zen 3,
// probably from conflicts in the L1 cache; plain mmap() places mappings of 64 and 128 MiB so.
void* map_shared(const Descriptor& file, std::size_t bytes, bool is_long) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  static std::atomic<std::size_t> mappings{0};
  const std::size_t room = bytes + 2 * kAlike;
  void* const found =
      is_long ? ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (found == MAP_FAILED)  // short, or too little address space
    return ::mmap(nullptr, bytes, kProtection, MAP_SHARED, file.get(), 0);
  auto* const begin = static_cast<std::byte*>(found);
  const std::size_t to_next = -reinterpret_cast<std::uintptr_t>(found) % kAlike;
  const std::size_t before = to_next + mappings++ * kHugePage % kAlike;
  void* const mapped =
      ::mmap(begin + before, bytes, kProtection, MAP_SHARED | MAP_FIXED, file.get(), 0);
  const int why = errno;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t behind = before + (bytes + page - 1) / page * page;
  if (mapped == MAP_FAILED) {
    ::munmap(begin, room);
  } else {
    if (before > 0) ::munmap(begin, before);
    ::munmap(begin + behind, room - behind);
  }
  errno = why;
  return mapped;
}

// Best effort, for kernels without this call. Populates first: the kernel makes huge pages from
// partly present memory, not from empty memory.
void collapse(std::span<std::byte> huge_pages) {
  for (std::size_t at = 0; at < huge_pages.size(); at += kHugePage)
    if (::madvise(huge_pages.data() + at, 1, kPopulateWrite) != 0) return;
  if (!huge_pages.empty()) ::madvise(huge_pages.data(), huge_pages.size(), kCollapse);
}

// A memfd counts as a file: exceeding the file size limit would kill the process by a signal.
void require_file_size(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes <= limit.rlim_cur) return;
  throw Error(ErrorCode::kSystem, kNoPeer,
              "memory that ranks share, of " + std::to_string(bytes) +
                  " bytes, counts as a file, and files are limited to " +
                  std::to_string(limit.rlim_cur) + ": raise ulimit -f");
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes, Pages pages) : descriptor_(make_memfd()) {
  require_file_size(bytes);
  // The kernel does not check the size of a memfd, even if there are not enough pages.
  MemoryClaim claim;
  if (pages == Pages::kPresent) claim = claim_memory(bytes, "that ranks share");
  if (::ftruncate(descriptor_.get(), static_cast<off_t>(bytes)) != 0)
    throw_system("ftruncate of a memfd");
  if (::fcntl(descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_system("sealing a memfd");
  }
  map(bytes, pages);
}

SharedMemory::SharedMemory(Descriptor descriptor, std::size_t bytes, Pages pages)
    : descriptor_(std::move(descriptor)) {
  const int seals = ::fcntl(descriptor_.get(), F_GET_SEALS);
  struct stat status {};
  if (seals < 0 || ::fstat(descriptor_.get(), &status) != 0) throw_system("a peer's memory");
  if ((seals & F_SEAL_SHRINK) == 0) {
    throw Error(ErrorCode::kProtocol, kNoPeer, "a peer's memory is not sealed against shrinking");
  }
  if (status.st_size < static_cast<off_t>(bytes)) {
    throw Error(ErrorCode::kProtocol, kNoPeer,
                "a peer's memory is " + std::to_string(status.st_size) + " bytes long where " +
                    std::to_string(bytes) + " were announced");
  }
  map(bytes, pages);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void SharedMemory::map(std::size_t bytes, Pages pages) {
  const bool is_long = pages == Pages::kPresent && bytes >= kHugePage;
  void* address = map_shared(descriptor_, bytes, is_long);
  if (address == MAP_FAILED) throw_system("mapping " + std::to_string(bytes) + " bytes of a memfd");
  bytes_ = {static_cast<std::byte*>(address), bytes};
  if (pages != Pages::kPresent) return;
  ::madvise(address, bytes, MADV_HUGEPAGE);
  collapse(bytes_.first(bytes / kHugePage * kHugePage));
  if (::madvise(address, bytes, kPopulateWrite) == 0 || errno == EINVAL) return;
  const int why = errno;
  ::munmap(address, bytes);
  bytes_ = {};
  errno = why;
  throw_system("finding pages for " + std::to_string(bytes) + " bytes of a memfd");
}

bool make_private(std::span<std::byte> bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size();
  for (std::uintptr_t at = begin; at < end; at += page) {
    void* const shared = reinterpret_cast<void*>(at);
    void* const copy =
        ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return false;
    std::memcpy(copy, shared, page);
    // The system call itself. A library that tracks mappings may have replaced the C library's
    // mremap by a version with four arguments, which ignores the new address (UCX 1.13 does).
    if (::syscall(SYS_mremap, copy, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, shared) == -1) {
      ::munmap(copy, page);
      return false;
    }
  }
  return true;
}

std::string why_no_shared_memory() {
  try {
    const SharedMemory trial(4096);
    trial.bytes()[0] = std::byte{1};
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace kolo::inline v0::posix
