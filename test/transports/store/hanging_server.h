// Server of a TCP store that hangs on demand, like a stopped process: its connections stay open,
// but it reads and answers nothing.
#pragma once

#include <poll.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "transports/posix/event.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"

namespace kolo::test {

// Proxy between clients and a real server.
class HangingServer {
 public:
  HangingServer() : thread_([this] { pass_on(); }) {}
  ~HangingServer() { hang(); }
  HangingServer(const HangingServer&) = delete;
  HangingServer& operator=(const HangingServer&) = delete;

  std::uint16_t port() const { return posix::local_address(listener_).port(); }

  // Stops forwarding from now on.
  void hang() {
    if (!thread_.joinable()) return;
    hangs_ = true;
    bell_.ring();
    thread_.join();
  }

 private:
  struct Pair {
    posix::Descriptor client;
    posix::Descriptor server;
  };

  void pass_on() {
    while (!hangs_) {
      std::vector<pollfd> watched{{bell_.descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        watched.push_back({pair.client.get(), POLLIN, 0});
        watched.push_back({pair.server.get(), POLLIN, 0});
      }
      ::poll(watched.data(), watched.size(), -1);
      if (hangs_) return;
      pairs_.remove_if([](const Pair& pair) {
        return !passes(pair.client, pair.server) || !passes(pair.server, pair.client);
      });
      if (watched[1].revents != 0) accept();
    }
  }

  void accept() {
    Pair pair;
    pair.client = posix::accept_from(listener_);
    std::string why;
    const auto address = posix::resolve("127.0.0.1", server_.port(), why).at(0);
    pair.server = posix::start_connecting(address);
    wait_for(pair.server, POLLOUT);
    pairs_.push_back(std::move(pair));
  }

  // Forwards the available bytes; returns false if either end has closed.
  static bool passes(const posix::Descriptor& from, const posix::Descriptor& to) {
    std::array<char, 65536> bytes{};
    const auto got = posix::receive_some(from, bytes.data(), bytes.size());
    std::string_view left(bytes.data(), got.bytes);
    while (!left.empty()) {
      const auto sent = posix::send_some(to, left.data(), left.size());
      if (sent.is_closed) return false;
      left.remove_prefix(sent.bytes);
      if (sent.bytes == 0) wait_for(to, POLLOUT);
    }
    return !got.is_closed;
  }

  static void wait_for(const posix::Descriptor& socket, short events) {
    pollfd watched{socket.get(), events, 0};
    ::poll(&watched, 1, 20'000);
  }

  TcpStoreServer server_{"127.0.0.1", 0};
  const posix::Descriptor listener_ = posix::listen_on("127.0.0.1", 0);
  std::list<Pair> pairs_;
  posix::Event bell_;
  std::atomic<bool> hangs_ = false;
  std::thread thread_;
};

}  // namespace kolo::test
