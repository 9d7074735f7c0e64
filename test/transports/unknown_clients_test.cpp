// Unknown clients at the ports of kolo neither stop nor slow the job.
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/raw_connection.h"
#include "transports/error.h"
#include "transports/store/wire.h"
#include "transports/tcp/hello.h"
#include "transports/tcp/transport.h"

using namespace kolo;
using namespace kolo::test;

namespace {

std::string random_bytes(unsigned seed, std::size_t bytes) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  for (auto& byte : text) byte = static_cast<char>(random());
  return text;
}

std::string text_of(const tcp::Hello& hello) {
  const auto bytes = tcp::encode(hello);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The port that rank 0 has published while the job is made: see tcp/address.cpp.
std::uint16_t published_port(Store& store) {
  std::istringstream address(store.get("address/0", in_seconds(20)));
  std::string identity;
  std::string host;
  std::uint16_t port = 0;
  std::getline(address, identity);
  address >> host >> port;
  return port;
}

bool works(Store& store) {
  store.set("key", "value");
  return store.get("key", in_seconds(20)) == "value";
}

}  // namespace

TEST_CASE("a store drops clients that do not speak its protocol") {
  TcpStoreServer server("127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server.port(), in_seconds(20));
  using store_wire::Kind;
  std::string broken_length = store_wire::encode({Kind::kHello, 1, store_wire::kVersion, {}, "x"});
  broken_length[31] = '\x7f';
  const std::vector<std::string> speeches = {
      "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
      random_bytes(1, 4000),
      std::string(4000, '\0'),
      broken_length,
      store_wire::encode({Kind::kSet, 1, 0, "key", "an unknown client's"}),  // before its hello
      store_wire::encode({Kind::kHello, 1, store_wire::kVersion, {}, std::string(100'000, 'x')}),
      store_wire::encode({Kind::kHello, 1, store_wire::kVersion, {}, "x"}) +
          "and then nonsense, 32 bytes at the least"};
  for (const auto& speech : speeches) {
    RawConnection unknown_client(server.port());
    unknown_client.say(speech);
    CHECK(unknown_client.is_hung_up());
    CHECK(works(*store));
  }
  CHECK_FALSE(store->failure());
}

TEST_CASE("a store drops silent unknown clients, the oldest first") {
  TcpStoreServer server("127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server.port(), in_seconds(20));
  std::vector<RawConnection> unknown_clients;
  for (int i = 0; i < 200; ++i) unknown_clients.emplace_back(server.port());
  CHECK(unknown_clients.front().is_hung_up());
  CHECK(works(*store));
  CHECK(works(*connect_tcp_store("127.0.0.1", server.port(), in_seconds(20))));
}

TEST_CASE("a hello to a store may come byte by byte") {
  TcpStoreServer server("127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server.port(), in_seconds(20));
  using store_wire::Kind;
  RawConnection slow(server.port());
  const std::string speech =
      store_wire::encode({Kind::kHello, 1, store_wire::kVersion, {}, "slow"}) +
      store_wire::encode({Kind::kSet, 2, 0, "from slow", "1"});
  for (const char byte : speech) slow.say({&byte, 1});
  CHECK(store->get("from slow", in_seconds(20)) == "1");
}

TEST_CASE("a client that connects to something other than a store reports it") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  std::thread web_server([&] {
    pollfd watched{listener.get(), POLLIN, 0};
    ::poll(&watched, 1, 20'000);
    const auto socket = posix::accept_from(listener);
    const std::string reply = "HTTP/1.1 400 Bad Request\r\n\r\n";
    posix::send_some(socket, reply.data(), reply.size());
  });
  try {
    connect_tcp_store("127.0.0.1", port, in_seconds(20));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("another program seems to own that port") &&
                                 ContainsSubstring("127.0.0.1:"));
  }
  web_server.join();
}

TEST_CASE("a rank 0 that hangs is reported to all ranks, and to itself once it continues") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  std::optional<RawConnection> server;
  std::thread rank_0([&] {
    pollfd watched{listener.get(), POLLIN, 0};
    ::poll(&watched, 1, 20'000);
    server.emplace(posix::accept_from(listener));
    std::string heard;
    std::optional<store_wire::Message> hello;
    while (!(hello = store_wire::take(heard))) heard += server->hear(1);
    server->say(
        store_wire::encode({store_wire::Kind::kValue, hello->id, store_wire::kVersion, {}, {}}));
  });
  auto store = connect_tcp_store("127.0.0.1", port, in_seconds(2), 0);
  rank_0.join();
  const std::string named =
      "rank 0 is gone, which serves the store at 127.0.0.1:" + std::to_string(port) +
      ": it has not answered for 3.0 s";
  try {
    store->set("key", "value");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.peer() == 0);
    CHECK_THAT(error.what(), ContainsSubstring(named));
  }
  CHECK_THAT(store->failure().value_or(""), ContainsSubstring(named));
  store.reset();
  std::string heard = server->hear_all();
  CHECK(store_wire::take(heard)->kind == store_wire::Kind::kSet);
  const auto last = store_wire::take(heard);
  REQUIRE(last);
  CHECK(last->kind == store_wire::Kind::kFail);
  CHECK_THAT(last->value, ContainsSubstring(named));
}

TEST_CASE("a client with a silent server gives up at its deadline") {
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  try {
    connect_tcp_store("127.0.0.1", port, in_seconds(0.1));
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDeadline);
    CHECK_THAT(error.what(), ContainsSubstring(" s for the store at 127.0.0.1:" +
                                               std::to_string(port) + " to answer the hello") &&
                                 ContainsSubstring("(the launcher or rank 0) hangs") &&
                                 ContainsSubstring("name another store in KOLO_STORE"));
  }
}

TEST_CASE("unknown clients do not disturb tcp ranks") {
  const auto store = make_local_store();
  std::unique_ptr<Transport> first;
  TcpSettings patient;
  patient.hello_timeout = std::chrono::minutes(10);
  const auto make = [&](int rank) {
    return make_tcp({rank, 2, store, in_seconds(60), 0, 2}, patient);
  };
  std::thread rank_0([&] { first = make(0); });
  const std::uint16_t port = published_port(*store);

  std::vector<std::unique_ptr<RawConnection>> unknown_clients;
  const auto say = [&](const std::string& speech) {
    unknown_clients.push_back(std::make_unique<RawConnection>(port));
    unknown_clients.back()->say(speech);
  };
  say("");                                    // silent for ever
  say(text_of({{}, 1, 0}).substr(0, 30));     // half a hello, and then silent
  say("SSH-2.0-OpenSSH_9.2\r\n");             // another protocol
  say(random_bytes(7, 64));                   // as long as a hello
  say(text_of({tcp::random_token(), 1, 0}));  // a hello of another job
  say(text_of({tcp::random_token(), 1, 0}) + random_bytes(8, 10'000));
  for (int i = 0; i < 150; ++i) unknown_clients.push_back(std::make_unique<RawConnection>(port));

  const auto second = make(1);
  rank_0.join();  // without waiting for a client's timeout
  REQUIRE(first != nullptr);

  const std::byte sent[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  REQUIRE(second->channel(0).send(sent));
  std::byte got[3] = {};
  const auto deadline = in_seconds(20);
  while (!first->channel(1).receive(got) && Clock::now() < deadline) second->progress();
  CHECK(got[2] == std::byte{3});
}

TEST_CASE("an impostor that listens at a rank's address is not taken for the rank") {
  const auto store = make_local_store();
  const auto listener = posix::listen_on("127.0.0.1", 0);
  const auto port = posix::local_address(listener).port();
  store->set("address/0", "elsewhere\n127.0.0.1 " + std::to_string(port) + " " +
                              std::to_string(TcpSettings{}.segment_bytes) + " 1 " +
                              tcp::to_text(tcp::random_token()) + " 0\n");
  std::thread impostor([&] {
    pollfd watched{listener.get(), POLLIN, 0};
    ::poll(&watched, 1, 20'000);
    const auto socket = posix::accept_from(listener);
    const std::string speech = random_bytes(3, 64);
    posix::send_some(socket, speech.data(), speech.size());
  });
  const auto rank_1 = make_tcp({1, 2, store, in_seconds(20), 0, 2}, TcpSettings{});
  std::byte got[8] = {};
  const auto deadline = in_seconds(20);
  try {
    while (!rank_1->channel(0).receive(got) && Clock::now() < deadline) rank_1->progress();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPeerLost);
    CHECK(error.peer() == 0);
    CHECK_THAT(error.what(), ContainsSubstring("rank 0 at 127.0.0.1:" + std::to_string(port)) &&
                                 ContainsSubstring("another program listens there"));
  }
  impostor.join();
}

TEST_CASE("any bytes are either messages or an error, and cause no crash") {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::string bytes = store_wire::encode({store_wire::Kind::kSet, seed, -1, "key", "value"}) +
                        store_wire::encode({store_wire::Kind::kGet, seed, 0, "key", {}});
    std::mt19937 random(seed);
    for (unsigned flips = random() % 4; flips-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    try {
      while (store_wire::take(bytes)) {
      }
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
    }
  }
}

TEST_CASE("a hello survives encoding and decoding, and a damaged one is rejected") {
  const tcp::Hello hello{tcp::random_token(), 3, 1};
  auto bytes = tcp::encode(hello);
  const auto back = tcp::decode(bytes);
  REQUIRE(back);
  CHECK(back->token == hello.token);
  CHECK((back->from == 3 && back->to == 1));
  CHECK(tcp::token_from_text(tcp::to_text(hello.token)) == hello.token);
  CHECK_FALSE(tcp::token_from_text("too short"));
  CHECK_FALSE(tcp::token_from_text(std::string(32, 'g')));
  for (std::size_t i = 0; i < 8; ++i) {
    auto damaged = bytes;
    damaged[i] ^= std::byte{1};
    CHECK_FALSE(tcp::decode(damaged));
    CHECK_FALSE(tcp::may_become_hello(std::span(damaged).first(i + 1)));
    CHECK(tcp::may_become_hello(std::span(bytes).first(i)));
  }
}
