#include "transports/ucx/liveness.h"

#include <poll.h>
#include <array>
#include <cstring>
#include <exception>
#include <utility>

namespace kolo::inline v0::ucx {

namespace {

// Backlog beyond the ranks. Connections wait there until the end, those of unknown clients too, and
// must not keep ranks out. The kernel limits the backlog to net.core.somaxconn.
constexpr int kRoomForUnknownClients = 4096;

std::span<const std::byte> bytes_of(const Farewell& farewell) {
  return std::as_bytes(std::span(&farewell, 1));
}

// Reads a farewell from `socket`. Ignores messages of any other length.
std::optional<Farewell> receive(int socket, bool& is_closed) {
  std::array<std::byte, sizeof(Farewell) + 1> bytes;
  const auto message = posix::receive_message(socket, bytes);
  is_closed = message.what == posix::Received::kClosed;
  Farewell farewell;
  if (message.what != posix::Received::kMessage || message.bytes != sizeof farewell)
    return std::nullopt;
  std::memcpy(&farewell, bytes.data(), sizeof farewell);
  return farewell;
}

}  // namespace

HostLiveness::HostLiveness(int size, posix::Epoll& epoll)
    : epoll_(epoll),
      listener_(std::in_place, size + kRoomForUnknownClients),
      watched_(static_cast<std::size_t>(size)) {}

bool HostLiveness::watch(int peer, const std::string& name, const Farewell& own) {
  auto socket = posix::connect_unix(name);
  if (!socket) return false;
  posix::send_message(socket->get(), bytes_of(own));
  epoll_.add(socket->get(), EPOLLIN | EPOLLRDHUP, static_cast<std::uint64_t>(peer));
  watched(peer).socket = std::move(*socket);
  return true;
}

HostLiveness::News HostLiveness::hear(int peer) {
  News news;
  Watched& line = watched(peer);
  if (!line.socket.is_open()) return news;
  news.farewell = receive(line.socket.get(), news.is_end);
  if (!news.is_end) return news;
  epoll_.remove(line.socket.get());
  line.socket.close();
  line.is_gone = true;
  return news;
}

bool HostLiveness::is_alive(int peer) const noexcept {
  const Watched& line = watched_[static_cast<std::size_t>(peer)];
  if (!line.socket.is_open()) return !line.is_gone;
  pollfd asked{line.socket.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) == 0;
}

void HostLiveness::part(
    const std::function<std::optional<Farewell>(const Farewell& watcher)>& farewell) noexcept {
  listener_->refuse_others();  // otherwise new connections could arrive for ever
  try {
    while (const auto socket = listener_->accept()) {
      bool is_closed = false;
      const auto watcher = receive(socket->get(), is_closed);
      const auto answer = watcher ? farewell(*watcher) : std::nullopt;
      if (answer) posix::send_message(socket->get(), bytes_of(*answer));
    }
  } catch (const std::exception&) {  // no descriptor to accept with: UCX tells the watchers
  }
  listener_.reset();
}

}  // namespace kolo::inline v0::ucx
