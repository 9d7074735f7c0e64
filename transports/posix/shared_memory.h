// Memory shared by two processes: a memfd, which has no name and is freed with its last user.
//
// It is sealed against shrinking. So a peer cannot turn this process's loads into SIGBUS.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

enum class Pages {
  kWhenTouched,  // allocated on first touch, near the thread that touches them
  kPresent,      // allocated at once, near the calling thread's core; huge pages if possible
};

class SharedMemory {
 public:
  SharedMemory() = default;

  // New memory, all zero. Error kSystem if the kernel refuses.
  explicit SharedMemory(std::size_t bytes, Pages pages = Pages::kWhenTouched);

  // Maps a peer's memory. Error kProtocol unless it is sealed and at least `bytes` long.
  SharedMemory(Descriptor descriptor, std::size_t bytes, Pages pages = Pages::kWhenTouched);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }

  // For passing to a peer; -1 after forget_descriptor().
  int descriptor() const { return descriptor_.get(); }

  // Closes the descriptor; the mapping stays.
  void forget_descriptor() noexcept { descriptor_.close(); }

 private:
  void map(std::size_t bytes, Pages pages);

  Descriptor descriptor_;
  std::span<std::byte> bytes_;
};

// Replaces the whole pages under `bytes` by private copies with the same content. Peers that have
// mapped the memory keep the old pages. Works page by page: a concurrent write beside `bytes` is
// lost only if it falls into the copy of its page. False if the kernel refuses.
bool make_private(std::span<std::byte> bytes) noexcept;

// Tries to create shared memory. Returns the reason if that fails, else an empty text.
std::string why_no_shared_memory();

}  // namespace kolo::inline v0::posix
