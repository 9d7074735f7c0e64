// A rank's buffer: zeroed pages, all of them touched, so that no page fault is measured.
#pragma once

#include <cstddef>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::bench {

enum class Pages {
  kOwn,     // the process's, as malloc gives them
  kShared,  // which a peer's own process can map as well, by path()
};

class Buffer {
 public:
  Buffer() = default;
  // Error kSystem, or std::bad_alloc, where there is no memory.
  Buffer(std::size_t bytes, Pages pages);
  // Another process's, of that path and at least so many bytes; all pages mapped at once.
  Buffer(const std::string& path, std::size_t bytes);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // For who shares the host; empty where the pages are the process's own.
  std::string path() const;

 private:
  void swap(Buffer& other) noexcept;
  void map();

  posix::Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kolo::bench
