// A real tcp rank and a fake peer that the test drives byte by byte.
#pragma once

#include <poll.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/raw_connection.h"
#include "transports/error.h"
#include "transports/tcp/hello.h"
#include "transports/tcp/transport.h"

namespace kolo::test {

using Bytes = std::vector<std::byte>;

inline Bytes numbered(std::size_t bytes, unsigned first = 0) {
  Bytes result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(first + i * 7);
  return result;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Call>
void until(Transport& transport, const Call& is_done) {
  const auto deadline = in_seconds(30);
  while (!is_done()) {
    transport.progress();
    if (Clock::now() > deadline) FAIL("it takes too long");
    std::this_thread::yield();
  }
}

// The error message of the lost peer that `call` finally throws.
template <typename Call>
std::string loss_in(Transport& transport, const Call& call) {
  try {
    until(transport, call);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 1 - transport.rank());
    return error.what();
  }
  FAIL("nothing was lost");
  return "";
}

inline tcp::Hello hello_in(const std::string& text) {
  std::array<std::byte, tcp::kHelloBytes> bytes{};
  REQUIRE(text.size() >= bytes.size());
  std::memcpy(bytes.data(), text.data(), bytes.size());
  const auto hello = tcp::decode(bytes);
  REQUIRE(hello);
  return *hello;
}

// A real rank with a fake peer: the address to connect to, and the hello to send.
class FakePeer {
 public:
  explicit FakePeer(int real, const TcpSettings& settings = {})
      : real_(real), listener_(posix::listen_on("127.0.0.1", 0)) {
    const auto store = make_local_store();
    store->set(key(1 - real),
               "elsewhere\n127.0.0.1 " + std::to_string(posix::local_address(listener_).port()) +
                   " " + std::to_string(settings.segment_bytes) + " " +
                   std::to_string(settings.lanes) + " " + tcp::to_text(token_) + " 0\n");
    transport_ = make_tcp({real, 2, store, in_seconds(30), 0, 2}, settings);
    std::istringstream address(store->get(key(real), in_seconds(20)));
    std::string line;
    std::size_t segment = 0;
    int lanes = 0;
    std::string token;
    std::getline(address, line);
    address >> host_ >> port_ >> segment >> lanes >> token;
    host_ = host_.substr(0, host_.find(','));
    if (real == 0) token_ = tcp::token_from_text(token).value();
  }

  Transport& transport() { return *transport_; }
  Channel& channel() { return transport_->channel(1 - real_); }

  // The first address that the real rank has published.
  const std::string& host() const { return host_; }

  // Ends the real rank.
  void end() { transport_.reset(); }

  RawConnection connect() const { return RawConnection(port_); }
  std::string hello(bool follows = false, std::uint32_t lane = 0) const {
    const auto bytes = tcp::encode({token_, 1 - real_, real_, follows, lane});
    return text_of(bytes);
  }

  // Whether the real rank has opened a connection that is not accepted yet.
  bool has_called() const {
    pollfd watched{listener_.get(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  }

  // Accepts the connection that the real rank has opened.
  RawConnection accept() const {
    pollfd watched{listener_.get(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 20'000) == 1);
    return RawConnection(posix::accept_from(listener_));
  }

 private:
  static std::string key(int rank) { return "address/" + std::to_string(rank); }

  const int real_;
  posix::Descriptor listener_;
  tcp::Token token_ = tcp::random_token();
  std::string host_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Transport> transport_;
};

}  // namespace kolo::test
