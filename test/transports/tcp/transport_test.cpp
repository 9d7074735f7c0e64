// Features of TCP: addresses, ports, congestion control and the number of system calls.
#include <algorithm>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/tcp/fake_peer.h"
#include "test/transports/tcp/pair.h"
#include "transports/error.h"
#include "transports/posix/socket.h"
#include "transports/registry.h"
#include "transports/tcp/transport.h"

using namespace kolo;
using namespace kolo::test;

namespace {

void exchange_bytes(const Pair& pair, std::size_t bytes) {
  const std::vector<std::byte> data(bytes, std::byte{7});
  std::vector<std::byte> got(bytes);
  REQUIRE(pair.a->channel(1).send(data));
  const auto deadline = in_seconds(30);
  while (!pair.b->channel(0).receive(got) && Clock::now() < deadline) pair.a->progress();
  CHECK(got == data);
}

// Sends in both directions at once, more than the buffers hold, until `deadline`.
void exchange_much(const Pair& pair, std::size_t segments) {
  Transport* const ranks[] = {pair.a.get(), pair.b.get()};
  const std::size_t bytes = pair.a->channel(1).capabilities().segment_bytes;
  const std::vector<std::byte> data(bytes, std::byte{42});
  std::vector<std::byte> got[2] = {std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
  std::size_t sent[2] = {};
  std::size_t received[2] = {};
  const auto deadline = in_seconds(60);
  while (received[0] + received[1] < 2 * segments && Clock::now() < deadline) {
    for (int i = 0; i < 2; ++i) {
      Channel& channel = ranks[i]->channel(1 - i);
      if (sent[i] < segments && channel.send(data)) ++sent[i];
      if (received[i] < segments && channel.receive(got[i])) {
        ++received[i];
        CHECK(got[i] == data);
        std::fill(got[i].begin(), got[i].end(), std::byte{0});
      }
      ranks[i]->progress();
    }
  }
  CHECK((received[0] == segments && received[1] == segments));
}

}  // namespace

TEST_CASE("tcp connects ranks over IPv4 and IPv6") {
  for (const std::string host : {"", "127.0.0.1", "::1", "localhost", "0.0.0.0", "::"}) {
    TcpSettings settings;
    settings.host = host;
    INFO("host '" << host << "'");
    exchange_bytes(make_pair_with(settings), 100'000);
  }
}

TEST_CASE("a rank publishes an address that other ranks can reach") {
  TcpSettings settings;
  settings.rendezvous_host = "127.0.0.1";  // as if MASTER_ADDR were this machine's own name
  for (const std::string host : {"", "0.0.0.0", "::"}) {
    INFO("host '" << host << "'");
    settings.host = host;
    const FakePeer played(0, settings);
    CHECK((played.host() != "0.0.0.0" && played.host() != "::"));
    // The local address of the default route, if there is one.
    std::string why;
    const auto far = posix::resolve("192.0.2.1", 9, why).at(0);
    const posix::Descriptor socket(::socket(far.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const bool is_routed = ::connect(socket.get(), far.get(), far.length()) == 0;
    CHECK(played.host() == (is_routed ? posix::local_address(socket).host() : "127.0.0.1"));
  }
  settings.host = "localhost";  // a name may resolve to another address on another host
  const std::string published = FakePeer(0, settings).host();
  CHECK((published == "127.0.0.1" || published == "::1"));
}

TEST_CASE("tcp listens on ports of the configured range") {
  // Two ports that were free a moment ago, as a user would choose them for a firewall.
  auto first = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(first).port();
  TcpSettings settings;
  settings.host = "127.0.0.1";
  settings.port_low = port;
  settings.port_high = static_cast<std::uint16_t>(port < 65000 ? port + 500 : 65535);
  exchange_bytes(make_pair_with(settings), 10);  // the first one is taken

  settings.port_high = port;
  try {
    make_pair_with(settings);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring(" to " + std::to_string(port) + " (KOLO_TCP_PORTS)") &&
                   ContainsSubstring("in use"));
  }
}

TEST_CASE("the error for a missing congestion control names it") {
  TcpSettings settings;
  settings.congestion = "nonesuch";
  try {
    make_pair_with(settings);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("KOLO_TCP_CONGESTION='nonesuch'"));
  }
  settings.congestion = "system";
  exchange_bytes(make_pair_with(settings), 10);
}

TEST_CASE("the smallest socket buffers make tcp slower, but change nothing else") {
  TcpSettings settings;
  settings.buffer_bytes = 4096;
  exchange_much(make_pair_with(settings), 8);
}

TEST_CASE("ranks with different segment sizes get an error") {
  const auto store = make_local_store();
  bool is_refused = false;
  std::thread other([&] {
    try {
      make_tcp({1, 2, store, in_seconds(30), 0, 2}, TcpSettings{});
    } catch (const Error& error) {
      is_refused = error.code() == ErrorCode::kMismatch;
    }
  });
  TcpSettings settings;
  settings.segment_bytes = 4096;
  try {
    make_tcp({0, 2, store, in_seconds(30), 0, 2}, settings);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kMismatch);
    CHECK_THAT(error.what(),
               ContainsSubstring("4096 bytes") && ContainsSubstring("KOLO_SEGMENT_BYTES"));
  }
  other.join();
  CHECK(is_refused);
}

TEST_CASE("a header and its payload cost one system call on each side") {
  const Pair pair = make_pair_with({});
  exchange_bytes(pair, 1);
  Channel& out = pair.a->channel(1);
  Channel& in = pair.b->channel(0);
  const std::byte header[16] = {};
  const std::byte payload[8] = {};
  std::byte got[16] = {};
  const auto before_out = out.statistics().system_calls;
  const auto before = in.statistics().system_calls;
  REQUIRE(out.send(header, kMore));
  CHECK(out.statistics().system_calls == before_out);
  REQUIRE(out.send(payload));
  CHECK(out.statistics().system_calls == before_out + 1);
  CHECK(out.is_drained());
  // Loopback delivers before send returns.
  REQUIRE(in.receive(std::span(got)));
  REQUIRE(in.receive(std::span(got).first(8)));
  CHECK(in.statistics().system_calls == before + 1);
}

TEST_CASE("data held back by kMore is sent if nothing follows") {
  const Pair pair = make_pair_with({});
  const std::byte data[5] = {std::byte{1}};
  REQUIRE(pair.a->channel(1).send(data, kMore));
  pair.a->progress();
  std::byte got[5] = {};
  const auto deadline = in_seconds(30);
  while (!pair.b->channel(0).receive(got) && Clock::now() < deadline) std::this_thread::yield();
  CHECK(got[0] == std::byte{1});
}

TEST_CASE("tcp: slots and views grow for a longer segment and keep the data queued before it") {
  TcpSettings settings;
  settings.segment_bytes = 4096;
  settings.longest_segment_bytes = 1 << 20;
  for (const int lanes : {1, 2}) {
    INFO(lanes << " lanes");
    settings.lanes = lanes;
    const Pair pair = make_pair_with(settings);
    Channel& out = pair.a->channel(1);
    Channel& in = pair.b->channel(0);
    CHECK(out.capabilities().segment_bytes == 1 << 20);
    CHECK(out.capabilities().preferred_segment_bytes == 4096);
    // Nothing is received yet, so all data beyond the socket buffers stays in slots.
    const std::size_t lengths[] = {100, 4096, 1 << 20, 5000, 1 << 19, 7};
    constexpr std::size_t kSegments = std::size(lengths);
    constexpr int kRounds = 20;
    std::size_t sent = 0;
    std::size_t received = 0;
    const auto pattern = [](std::size_t segment, std::size_t offset) {
      return static_cast<std::byte>(segment * 31 + offset * 7 + (offset >> 12));
    };
    const auto deadline = in_seconds(120);
    while (received < kRounds * kSegments && Clock::now() < deadline) {
      while (sent < kRounds * kSegments) {
        const std::size_t bytes = lengths[sent % kSegments];
        std::byte* slot = out.reserve(bytes);
        if (slot == nullptr) break;
        for (std::size_t i = 0; i < bytes; ++i) slot[i] = pattern(sent, i);
        out.commit();
        ++sent;
      }
      pair.a->progress();
      const std::size_t bytes = lengths[received % kSegments];
      const std::byte* view = in.view(bytes);
      if (view == nullptr) continue;
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < bytes; ++i) wrong += view[i] != pattern(received, i);
      CHECK(wrong == 0);
      in.release();
      ++received;
    }
    CHECK(received == kRounds * kSegments);
  }
}

TEST_CASE("tcp: memory sent as a copy is free at once, no matter how much the socket took") {
  constexpr std::size_t kLengths[] = {100, 3000, 200'000, 0, 256 * 1024, 70'000};
  constexpr std::size_t kSegments = 60;
  for (const int buffer_bytes : {0, 4096, 100'000}) {
    for (const int lanes : {1, 2}) {
      INFO("buffers of " << buffer_bytes << ", " << lanes << " lanes");
      TcpSettings settings;
      settings.buffer_bytes = buffer_bytes;
      settings.lanes = lanes;
      const Pair pair = make_pair_with(settings);
      Channel& out = pair.a->channel(1);
      Channel& in = pair.b->channel(0);
      std::vector<std::byte> data;
      const auto fill = [&](std::size_t segment) {
        data.resize(kLengths[segment % std::size(kLengths)]);
        for (std::size_t i = 0; i < data.size(); ++i)
          data[i] = static_cast<std::byte>(segment * 31 + i * 7 + (i >> 12));
      };
      std::size_t sent = 0;
      std::size_t received = 0;
      std::vector<std::byte> got(kLengths[0]);
      const auto deadline = in_seconds(120);
      while (received < kSegments && Clock::now() < deadline) {
        for (fill(sent); sent < kSegments && out.send_copy(data, sent % 5 == 0 ? kMore : kPlain);
             fill(++sent)) {
          std::ranges::fill(data, std::byte{0xee});
        }
        pair.a->progress();
        if (!in.receive(got)) continue;
        fill(received);
        CHECK(got == data);
        got.assign(kLengths[++received % std::size(kLengths)], std::byte{0});
      }
      CHECK(received == kSegments);
    }
  }
}
