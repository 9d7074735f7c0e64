// Memory that two processes share: a memfd, which has no name anywhere and is gone with its last
// user.
//
// It is sealed: nobody can shrink it, so a peer cannot turn our loads into SIGBUS.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

enum class Pages {
  kWhenTouched,  // come as they are touched, by whom they are touched
  kPresent,      // all there, near the core of the calling thread; huge where the system allows
};

class SharedMemory {
 public:
  SharedMemory() = default;

  // New memory, all zero. Error kSystem where the kernel refuses.
  explicit SharedMemory(std::size_t bytes, Pages pages = Pages::kWhenTouched);

  // Maps what a peer handed over. Error kProtocol unless it is sealed and at least `bytes` long.
  SharedMemory(Descriptor descriptor, std::size_t bytes, Pages pages = Pages::kWhenTouched);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::span<std::byte> bytes() const { return bytes_; }

  // To hand over; -1 once forgotten.
  int descriptor() const { return descriptor_.get(); }

  // Closes the descriptor; the mapping stays.
  void forget_descriptor() noexcept { descriptor_.close(); }

 private:
  void map(std::size_t bytes, Pages pages);

  Descriptor descriptor_;
  std::span<std::byte> bytes_;
};

// From now on the whole pages under `bytes` are this process's alone, with what is in them: peers
// who have mapped them go on with the old ones. Page by page, so that who writes beside `bytes`
// meanwhile can lose no more than what falls into the copy of one page. False where the kernel
// refuses.
bool make_private(std::span<std::byte> bytes) noexcept;

// Why SharedMemory cannot be made here; empty where it can. Tries it.
std::string why_no_shared_memory();

}  // namespace kolo::posix
