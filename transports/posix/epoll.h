// A set of descriptors watched together; itself a descriptor that is readable while one of them has
// news.
#pragma once

#include <sys/epoll.h>
#include <cstdint>
#include <span>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

class Epoll {
 public:
  Epoll();

  // Watches `descriptor` for `events` (EPOLLIN, ...; level-triggered unless EPOLLET); `token` comes
  // back in epoll_event::data.u64.
  void add(int descriptor, std::uint32_t events, std::uint64_t token);
  void change(int descriptor, std::uint32_t events, std::uint64_t token);
  void remove(int descriptor) noexcept;

  // The descriptors with news, written to the front of `into`; empty after `timeout_ms` (0: do not
  // block, -1: for ever) or when a signal came.
  std::span<const epoll_event> wait(std::span<epoll_event> into, int timeout_ms);

  int descriptor() const { return descriptor_.get(); }

 private:
  void control(int operation, int descriptor, std::uint32_t events, std::uint64_t token);

  Descriptor descriptor_;
};

}  // namespace kolo::posix
