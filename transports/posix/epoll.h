// Set of file descriptors watched together (epoll). The set's own descriptor is readable while one
// of them is ready.
#pragma once

#include <sys/epoll.h>
#include <cstdint>
#include <span>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

class Epoll {
 public:
  Epoll();

  // Watches `descriptor` for `events` (EPOLLIN, ...; level-triggered unless EPOLLET). wait()
  // returns `token` in epoll_event::data.u64.
  void add(int descriptor, std::uint32_t events, std::uint64_t token);
  void change(int descriptor, std::uint32_t events, std::uint64_t token);
  void remove(int descriptor) noexcept;

  // Waits up to `timeout_ms` (0: do not block, -1: no limit) and writes the ready descriptors to
  // the front of `into`. Empty after a timeout or a signal.
  std::span<const epoll_event> wait(std::span<epoll_event> into, int timeout_ms);

  int descriptor() const { return descriptor_.get(); }

 private:
  void control(int operation, int descriptor, std::uint32_t events, std::uint64_t token);

  Descriptor descriptor_;
};

}  // namespace kolo::inline v0::posix
