#include "transports/posix/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "transports/error.h"
#include "transports/posix/cgroup.h"

namespace kolo::posix {

namespace {

// MFD_NOEXEC_SEAL, since Linux 6.3: some systems refuse a memfd without it, older kernels refuse
// it.
constexpr unsigned kNoExecuteSeal = 8;

// MADV_POPULATE_WRITE, since Linux 5.14; older ones say EINVAL, and pages come as they are touched.
constexpr int kPopulateWrite = 23;

Descriptor make_memfd() {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor descriptor(::memfd_create("kolo", flags | kNoExecuteSeal));
  if (!descriptor.is_open() && errno == EINVAL) {
    descriptor = Descriptor(::memfd_create("kolo", flags));
  }
  if (!descriptor.is_open()) throw_system("memfd_create");
  return descriptor;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes, Pages pages) : descriptor_(make_memfd()) {
  // Nothing limits a memfd: who asks for more pages than there are is not refused.
  if (pages == Pages::kPresent) require_memory(bytes, "that ranks share");
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
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (address == MAP_FAILED) throw_system("mapping " + std::to_string(bytes) + " bytes of a memfd");
  bytes_ = {static_cast<std::byte*>(address), bytes};
  if (pages != Pages::kPresent) return;
  ::madvise(address, bytes, MADV_HUGEPAGE);  // advice: shmem_enabled may say never
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
    // Not by the C library: UCX puts a function of its own in mremap's place that passes on four
    // arguments, and not the fifth.
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

}  // namespace kolo::posix
