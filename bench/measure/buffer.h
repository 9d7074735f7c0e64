// A rank's buffer: zeroed pages, all touched, so that no page fault is measured.
#pragma once

#include <cstddef>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::bench {

enum class Pages {
  kOwn,     // private memory, from aligned_alloc
  kShared,  // a peer's worker process can map them too, by path()
};

class Buffer {
 public:
  Buffer() = default;
  // Error kSystem, or std::bad_alloc if there is not enough memory.
  Buffer(std::size_t bytes, Pages pages);
  // Maps the buffer of another process by its path, with at least `bytes` bytes and all pages at
  // once.
  Buffer(const std::string& path, std::size_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // A path for other processes on this host; empty for private pages.
  std::string path() const;

 private:
  void swap(Buffer& other) noexcept;
  void map();

  posix::Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kolo::bench
