#include "bench/measure/buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "bench/measure/memory_file.h"
#include "bench/measure/out_of_memory.h"
#include "transports/error.h"
#include "transports/posix/host/cgroup.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kPage = 4096;

posix::MemoryClaim claim(std::size_t bytes) {
  try {
    return posix::claim_memory(bytes, "of a buffer");
  } catch (const Error& error) {
    throw OutOfMemory(error.what());
  }
}

}  // namespace

Buffer::Buffer(std::size_t bytes, Pages pages) : bytes_((bytes / kPage + 1) * kPage) {
  const posix::MemoryClaim claimed = claim(bytes_);
  if (pages == Pages::kShared) {
    file_ = make_memory_file(bytes_, "memory that a peer's processes can map");
    map();
  } else {
    data_ = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes_));
    if (data_ == nullptr) {
      throw OutOfMemory(
          fmt::format("there is no memory for {} bytes of a buffer: {} (see ulimit -v)", bytes_,
                      posix::error_text(ENOMEM)));
    }
  }
  std::memset(data_, 0, bytes_);
}

Buffer::Buffer(const std::string& path, std::size_t bytes)
    : file_(open(path.c_str(), O_RDWR | O_CLOEXEC)), bytes_(bytes) {
  if (!file_.is_open()) posix::throw_system("open the ranks' buffer " + path);
  map();
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (file_.is_open()) {
    munmap(data_, bytes_);
  } else {
    std::free(data_);
  }
}

void Buffer::map() {
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
  if (memory == MAP_FAILED) posix::throw_system("mapping a buffer that is shared");
  data_ = static_cast<std::byte*>(memory);
}

std::string Buffer::path() const {
  return file_.is_open() ? fmt::format("/proc/{}/fd/{}", getpid(), file_.get()) : "";
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace kolo::bench
