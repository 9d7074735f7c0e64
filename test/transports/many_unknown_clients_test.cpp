// Many unknown clients at once, and clients that connect and leave: the job continues, and their
// cost is bounded.
#include <sys/resource.h>
#include <sys/socket.h>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/tcp/fake_peer.h"
#include "transports/settings.h"
#include "transports/store/wire.h"
#include "transports/tcp/address.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr int kClients = 1000;
constexpr int kMostUnknownClients = 64;  // clients without a hello that a port keeps

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Raises the descriptor limit for the clients and their server. False if the system refuses.
bool have_descriptors(rlim_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= count) return true;
  if (limit.rlim_max < count) return false;
  limit.rlim_cur = count;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// A client that sends nothing, garbage or half a hello.
RawConnection unknown_client(std::uint16_t port, int number) {
  RawConnection one(port);
  if (number % 4 == 1) one.say("GET / HTTP/1.1\r\n\r\n");
  if (number % 4 == 2) one.say(std::string("KOLO"));
  if (number % 4 == 3) one.say(std::string(10'000, static_cast<char>(number)));
  return one;
}

// Clients that connect at once and stay.
class UnknownClients {
 public:
  explicit UnknownClients(std::uint16_t port)
      : thread_([this, port] {
          try {
            for (int i = 0; i < kClients; ++i) here_.push_back(unknown_client(port, i));
          } catch (const std::exception&) {
            is_refused_.store(true);
          }
          is_here_.store(true);
        }) {}
  ~UnknownClients() { thread_.join(); }
  UnknownClients(const UnknownClients&) = delete;
  UnknownClients& operator=(const UnknownClients&) = delete;

  bool is_here() const { return is_here_.load(); }
  bool is_refused() const { return is_refused_.load(); }

 private:
  std::atomic<bool> is_here_{false};
  std::atomic<bool> is_refused_{false};
  std::vector<RawConnection> here_;
  std::thread thread_;
};

// Clients that connect as fast as possible and leave at once, until this object ends.
class Scan {
 public:
  explicit Scan(std::uint16_t port)
      : thread_([this, port] {
          for (int i = 0; !is_over_.load(); ++i) knock(port, i % 2 == 0);
        }) {}
  ~Scan() {
    is_over_.store(true);
    thread_.join();
  }
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

 private:
  // Closes by a reset: after an orderly close the local port would be blocked for a minute, and
  // ports are few.
  static void knock(std::uint16_t port, bool waits) {
    std::string why;
    const auto socket = posix::start_connecting(posix::resolve("127.0.0.1", port, why).at(0));
    const linger reset{1, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    pollfd watched{socket.get(), POLLOUT, 0};
    if (waits) ::poll(&watched, 1, 20'000);
  }

  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

bool works(Store& store, int number) {
  const std::string key = "key " + std::to_string(number);
  store.set(key, "value");
  return store.get(key, in_seconds(60)) == "value";
}

// The port that rank 0 has published: see tcp/address.cpp.
std::uint16_t published_port(Store& store) {
  return tcp::address_from_text(store.get("address/0", in_seconds(60)), 0).port;
}

// One segment in each direction.
void exchange(Transport& one, Transport& other, int number) {
  const Bytes sent = numbered(1000, static_cast<unsigned>(number));
  Bytes there(sent.size());
  Bytes back(sent.size());
  REQUIRE(other.channel(0).send(sent));
  until(other, [&] {
    one.progress();
    return one.channel(1).receive(there);
  });
  REQUIRE(one.channel(1).send(there));
  until(one, [&] {
    other.progress();
    return other.channel(0).receive(back);
  });
  REQUIRE(back == sent);
}

std::string hello_to_store() {
  using store_wire::Kind;
  return store_wire::encode({Kind::kHello, 1, store_wire::kVersion, {}, "one"});
}

}  // namespace

TEST_CASE("a thousand unknown clients at once neither stop a store nor keep ranks from it") {
  if (!have_descriptors(2 * kClients)) {
    WARN("skipped: no descriptors for a thousand connections");
    return;
  }
  TcpStoreServer server("127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server.port(), in_seconds(60));
  const std::size_t before = open_descriptors();
  UnknownClients clients(server.port());
  bool all_work = true;
  for (int i = 0; i < 20; ++i) {
    all_work &= works(*connect_tcp_store("127.0.0.1", server.port(), in_seconds(60)), i);
    all_work &= works(*store, i);
  }
  const auto deadline = in_seconds(60);
  for (int i = 20; !clients.is_here() && Clock::now() < deadline; ++i) all_work &= works(*store, i);
  CHECK(clients.is_here());
  CHECK_FALSE(clients.is_refused());
  CHECK(all_work);
  CHECK(works(*connect_tcp_store("127.0.0.1", server.port(), in_seconds(60)), -1));
  // The clients' own ends, and the few of the server's that are still open.
  CHECK(open_descriptors() <= before + kClients + kMostUnknownClients + 8);
  CHECK_FALSE(store->failure());
}

TEST_CASE("an endless port scan neither stops a store nor keeps ranks from it") {
  TcpStoreServer server("127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server.port(), in_seconds(60));
  const Scan scan(server.port());
  bool all_work = true;
  for (int i = 0; i < 100; ++i) {
    all_work &= works(*store, i);
    if (i % 10 == 0)
      all_work &= works(*connect_tcp_store("127.0.0.1", server.port(), in_seconds(60)), i);
  }
  CHECK(all_work);
  CHECK_FALSE(store->failure());
}

TEST_CASE("many unknown clients neither stop tcp ranks nor keep them from connecting") {
  if (!have_descriptors(2 * kClients)) {
    WARN("skipped: no descriptors for a thousand connections");
    return;
  }
  const auto store = make_local_store();
  // A third rank never connects, so that the others continue to listen.
  store->set("address/2", "elsewhere\n127.0.0.1 1 " + std::to_string(TcpSettings{}.segment_bytes) +
                              " 1 " + tcp::to_text(tcp::random_token()) + " 0\n");
  std::unique_ptr<Transport> first;
  const auto make = [&](int rank) {
    return make_tcp({rank, 3, store, in_seconds(60), 0, 2}, TcpSettings{});
  };
  std::thread rank_0([&] { first = make(0); });
  const auto second = make(1);
  rank_0.join();
  REQUIRE(first != nullptr);
  const std::uint16_t port = published_port(*store);
  const std::size_t before = open_descriptors();
  UnknownClients clients(port);
  std::optional<Scan> scan(port);
  for (int i = 0; i < 200; ++i) exchange(*first, *second, i);
  for (int i = 0; !clients.is_here(); ++i) exchange(*first, *second, i);
  CHECK_FALSE(clients.is_refused());
  scan.reset();
  for (int i = 0; i < 200; ++i) exchange(*first, *second, i);
  // The clients' own ends, the few of the rank's that are still open, and those of the ranks.
  CHECK(open_descriptors() <= before + kClients + kMostUnknownClients + 8);
}

TEST_CASE("an unknown client whose hello takes too long is dropped") {
  set_setting("KOLO_HELLO_TIMEOUT_MS", "100");
  TcpStoreServer server("127.0.0.1", 0);
  set_setting("KOLO_HELLO_TIMEOUT_MS", "");
  RawConnection slow(server.port());
  slow.say(hello_to_store().substr(0, 31));
  CHECK(slow.is_hung_up());

  TcpSettings settings;
  settings.hello_timeout = std::chrono::milliseconds(100);
  FakePeer real(0, settings);
  RawConnection slower = real.connect();
  slower.say(real.hello().substr(0, 63));
  std::atomic<bool> is_over{false};
  bool is_gone = false;
  std::thread waits([&] {
    is_gone = slower.is_hung_up();
    is_over.store(true);
  });
  until(real.transport(), [&] { return is_over.load(); });
  waits.join();
  CHECK(is_gone);
}

TEST_CASE(
    "a client that requests more from a store than it reads is dropped after whole answers only") {
  TcpStoreServer server("127.0.0.1", 0);
  const auto store = connect_tcp_store("127.0.0.1", server.port(), in_seconds(60));
  store->set("long", std::string(1 << 20, 'x'));
  RawConnection greedy(server.port());
  greedy.say(hello_to_store());
  using store_wire::Kind;
  const std::string question = store_wire::encode({Kind::kTryGet, 2, 0, "long", {}});
  std::string questions;
  for (int i = 0; i < 100; ++i) questions += question;
  greedy.say(questions + store_wire::encode({Kind::kSet, 3, 0, "all is asked", {}}));
  store->get("all is asked", in_seconds(60));
  std::string heard = greedy.hear_all();
  int answers = 0;
  while (store_wire::take(heard)) ++answers;  // throws if a part is missing
  CHECK(answers < 100);
  CHECK(heard.size() < store_wire::kHeaderBytes + (2 << 20));
  CHECK_FALSE(store->failure());
}
