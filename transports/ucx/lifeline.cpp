#include "transports/ucx/lifeline.h"

#include <poll.h>
#include <utility>

namespace kolo::ucx {

Lifelines::Lifelines(int size, posix::Epoll& epoll)
    : epoll_(epoll), listener_(std::in_place, size), watched_(static_cast<std::size_t>(size)) {}

bool Lifelines::watch(int peer, const std::string& name) {
  auto socket = posix::connect_unix(name);
  if (!socket) return false;
  epoll_.add(socket->get(), EPOLLIN | EPOLLRDHUP, static_cast<std::uint64_t>(peer));
  watched_[static_cast<std::size_t>(peer)] = std::move(*socket);
  return true;
}

void Lifelines::forget(int peer) noexcept {
  auto& socket = watched_[static_cast<std::size_t>(peer)];
  if (!socket.is_open()) return;
  epoll_.remove(socket.get());
  socket.close();
}

bool Lifelines::is_alive(int peer) const noexcept {
  const auto& socket = watched_[static_cast<std::size_t>(peer)];
  if (!socket.is_open()) return true;
  pollfd watched{socket.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&watched, 1, 0) == 0;
}

}  // namespace kolo::ucx
