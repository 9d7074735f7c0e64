// Raw TCP client that sends any bytes: the unknown client of many tests.
#pragma once

#include <poll.h>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "transports/posix/socket.h"

namespace kolo::test {

class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port, const std::string& host = "127.0.0.1") {
    std::string why;
    socket_ = posix::start_connecting(posix::resolve(host, port, why).at(0));
    if (!wait_for(POLLOUT) || posix::connect_result(socket_) != 0)
      throw std::runtime_error("cannot connect");
  }

  // Takes over an accepted connection.
  explicit RawConnection(posix::Descriptor socket) : socket_(std::move(socket)) {}

  // The next `bytes` bytes; fewer if the other side closes or stays silent.
  std::string hear(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::size_t filled = 0;
    while (filled < bytes && wait_for(POLLIN)) {
      const auto got = posix::receive_some(socket_, text.data() + filled, bytes - filled);
      if (got.is_closed) break;
      filled += got.bytes;
    }
    return text.substr(0, filled);
  }

  void say(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = posix::send_some(socket_, bytes.data(), bytes.size());
      if (sent.is_closed) return;
      bytes.remove_prefix(sent.bytes);
      if (sent.bytes == 0 && !wait_for(POLLOUT)) return;
    }
  }

  // All bytes until the other side closes or stays silent.
  std::string hear_all() {
    std::string text;
    char bytes[4096];
    while (wait_for(POLLIN)) {
      const auto got = posix::receive_some(socket_, bytes, sizeof bytes);
      if (got.is_closed) break;
      text.append(bytes, got.bytes);
    }
    return text;
  }

  // The bytes that are available now.
  std::string hear_now() {
    char bytes[65536];
    return {bytes, posix::receive_some(socket_, bytes, sizeof bytes).bytes};
  }

  // True once the other side has closed, whatever it sent before.
  bool is_hung_up() {
    char bytes[256];
    while (wait_for(POLLIN)) {
      if (posix::receive_some(socket_, bytes, sizeof bytes).is_closed) return true;
    }
    return false;
  }

 private:
  bool wait_for(short events) const {
    pollfd watched{socket_.get(), events, 0};
    return ::poll(&watched, 1, 20'000) == 1;
  }

  posix::Descriptor socket_;
};

}  // namespace kolo::test
