// A TCP client that says whatever a test wants: the stranger of many tests.
#pragma once

#include <poll.h>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

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

  void say(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = posix::send_some(socket_, bytes.data(), bytes.size());
      if (sent.is_closed) return;
      bytes.remove_prefix(sent.bytes);
      if (sent.bytes == 0 && !wait_for(POLLOUT)) return;
    }
  }

  // True once the other side has hung up, whatever it said before.
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
