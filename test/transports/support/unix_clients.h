// Unknown clients of a unix socket.
#pragma once

#include <poll.h>
#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "transports/posix/descriptor.h"
#include "transports/posix/unix_socket.h"
#include "transports/transport.h"

namespace kolo::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// `meanwhile` accepts the clients; by default another thread does.
inline void until(const std::function<bool()>& is_so, const std::string& what,
                  const std::function<void()>& meanwhile = std::this_thread::yield) {
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  while (!is_so()) {
    if (Clock::now() > deadline) throw std::runtime_error("waited in vain: " + what);
    meanwhile();
  }
}

inline posix::Descriptor come_to(const std::string& listener,
                                 const std::function<void()>& meanwhile = std::this_thread::yield) {
  posix::Descriptor socket;
  const auto is_there = [&] {
    auto one = posix::connect_unix(listener);
    if (one) socket = std::move(*one);
    return socket.is_open();
  };
  until(is_there, "room in the listener's backlog", meanwhile);
  return socket;
}

inline bool is_hung_up(const posix::Descriptor& socket) {
  std::array<std::byte, 8> into{};
  return posix::receive_message(socket.get(), into).what == posix::Received::kClosed;
}

inline void until_hung_up(const posix::Descriptor& socket,
                          const std::function<void()>& meanwhile = std::this_thread::yield) {
  until([&] { return is_hung_up(socket); }, "an unknown client is hung up on", meanwhile);
}

// Silent clients. On return all have been accepted, because a client behind them has been dropped.
inline std::vector<posix::Descriptor> silent_clients(
    const std::string& listener, int count,
    const std::function<void()>& meanwhile = std::this_thread::yield) {
  std::vector<posix::Descriptor> clients;
  for (int i = 0; i < count; ++i) clients.push_back(come_to(listener, meanwhile));
  const posix::Descriptor last = come_to(listener, meanwhile);
  posix::send_message(last.get(), bytes_of("GET / HTTP/1.1\r\n\r\n"));
  until_hung_up(last, meanwhile);
  return clients;
}

}  // namespace kolo::test
