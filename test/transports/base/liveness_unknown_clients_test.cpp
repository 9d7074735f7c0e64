// Clients of a liveness listener that are no ranks, one by one and many at once, and impostors at
// the address of a rank. No living rank may be taken for lost, and no ended rank for alive.
#include <poll.h>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/base/liveness_ranks.h"
#include "test/transports/support/listening_sockets.h"
#include "test/transports/support/raw_connection.h"
#include "transports/posix/unix_socket.h"

namespace kolo::test {

namespace {

constexpr int kMostUnknownClients = 64;  // beside the ranks

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The hello of a rank, sent to the owner of `ticket`.
std::string hello(std::uint64_t ticket, std::uint64_t rank) {
  const std::uint64_t words[2] = {ticket, rank};
  return {reinterpret_cast<const char*>(words), sizeof words};
}

// Messages of unknown clients to a rank that has `ticket`.
std::vector<std::string> speeches(std::uint64_t ticket) {
  return {"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
          "\n",
          std::string(40'000, '\xff'),
          hello(ticket + 1, 1),  // of another job
          hello(ticket, 0),      // of the receiver itself
          hello(ticket, 2),      // of a rank that does not exist
          hello(ticket, ~std::uint64_t{}),
          hello(ticket, 1).substr(0, 15)};  // almost a valid hello
}

// Job of two ranks; rank 0 watches rank 1.
struct Watching : LivenessRanks {
  explicit Watching(bool apart) : LivenessRanks(2) {
    if (apart) move_apart();
  }
  bool is_welcome() {
    int looks = 0;
    return until([&] { return ++looks == 20; }) && (*this)[0].gone() == 0 && (*this)[1].gone() == 0;
  }
  bool learns_the_end() {
    all[1].reset();
    return until([&] { return (*this)[0].is_gone(1); });
  }
};

// Impostor at the address of rank 1, in a job whose rank 0 is real.
struct Impostor {
  Impostor() : place(posix::listen_on("127.0.0.1", 0)), real(0, 2) {
    LivenessAddress there = real.address();
    there.host_identity = "elsewhere";
    there.tcp_host = "127.0.0.1";
    there.tcp_port = posix::local_address(place).port();
    there.ticket = 7;
    real.know({real.address(), there});
    real.join(1);
  }

  // Accepts the next connection while rank 0 looks.
  RawConnection accept() {
    posix::Descriptor socket;
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!socket.is_open() && Clock::now() < deadline) {
      real.look();
      socket = posix::accept_from(place);
    }
    REQUIRE(socket.is_open());
    return RawConnection(std::move(socket));
  }

  template <typename Condition>
  bool until(const Condition& is_so) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!is_so() && Clock::now() < deadline) real.look();
    return is_so();
  }

  posix::Descriptor place;
  PeerLiveness real;
};

std::string word(std::uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

}  // namespace

TEST_CASE("messages of unknown clients end no rank's liveness and block no later connection") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Watching ranks(is_apart);
    const LivenessAddress& address = ranks[0].address();
    for (const std::string& speech : speeches(address.ticket)) {
      const auto near = posix::connect_unix(address.unix_name);
      REQUIRE(near);
      posix::send_message(near->get(), bytes_of(speech), near->get());  // and a descriptor
      RawConnection far(address.tcp_port);
      far.say(speech);
      CHECK(ranks.is_welcome());
    }
    ranks[0].join(1);
    CHECK(ranks.is_welcome());
    CHECK(ranks.learns_the_end());
  }
}

TEST_CASE("a liveness listener drops clients as soon as it detects that they are unknown") {
  Watching ranks(true);
  const LivenessAddress& address = ranks[0].address();
  std::vector<std::string> all = speeches(address.ticket);
  all.pop_back();              // might still become a hello
  all.erase(all.begin() + 1);  // this one too
  for (const std::string& speech : all) {
    RawConnection unknown_client(address.tcp_port);
    unknown_client.say(speech);
    std::atomic<bool> is_over{false};
    std::thread waits([&] { is_over.store(unknown_client.is_hung_up()); });
    CHECK(ranks.until([&] { return is_over.load(); }));
    waits.join();
  }
}

TEST_CASE("a liveness hello may arrive byte by byte, and the welcome follows at once") {
  Watching ranks(true);
  const std::uint64_t own = ranks[1].address().ticket;
  RawConnection slow(ranks[0].address().tcp_port);
  for (const char byte : hello(ranks[0].address().ticket, 1)) {
    CHECK(slow.hear_now().empty());
    slow.say({&byte, 1});
    ranks[0].look();
  }
  std::string heard;
  CHECK(ranks.until([&] { return (heard += slow.hear_now()).size() >= sizeof own; }));
  CHECK(heard == word(own));
}

TEST_CASE("a liveness listener drops a client whose hello takes too long") {
  PeerLiveness impatient(0, 2, "", Clock::duration{0});
  RawConnection slow(impatient.address().tcp_port);
  slow.say(hello(impatient.address().ticket, 1).substr(0, 15));
  pollfd watched{impatient.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 10'000) == 1);
  for (int i = 0; i < 3; ++i) impatient.look();
  CHECK(slow.is_hung_up());
}

TEST_CASE("many unknown clients do not displace a connected rank") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Watching ranks(is_apart);
    ranks[0].join(1);
    for (int i = 0; i < 5; ++i) ranks[0].look();  // connected, and the hello is sent
    std::vector<RawConnection> clients;
    for (int i = 0; i < 300; ++i) clients.emplace_back(ranks[1].address().tcp_port);
    CHECK(ranks.is_welcome());
    CHECK(ranks.learns_the_end());
  }
}

TEST_CASE("many unknown clients do not block a rank that connects later, on either listener") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Watching ranks(is_apart);
    std::vector<RawConnection> clients;
    for (int i = 0; i < 300; ++i) clients.emplace_back(ranks[1].address().tcp_port);
    std::vector<posix::Descriptor> near;
    while (auto one = posix::connect_unix(ranks[1].address().unix_name))
      near.push_back(std::move(*one));
    ranks[0].join(1);
    CHECK(ranks.is_welcome());
    CHECK(ranks.learns_the_end());
  }
}

TEST_CASE("of a thousand silent unknown clients, liveness keeps only the last few") {
  Watching ranks(true);
  const LivenessAddress& address = ranks[0].address();
  const auto before = open_descriptors().size();
  std::vector<RawConnection> clients;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 5; ++j) clients.emplace_back(address.tcp_port);
    ranks[0].look();
    if (clients.size() > 2 * kMostUnknownClients)
      clients.erase(clients.begin(), clients.begin() + 5);
  }
  while (::poll(std::array{pollfd{ranks[0].descriptor(), POLLIN, 0}}.data(), 1, 0) == 1)
    ranks[0].look();
  CHECK(open_descriptors().size() <= before + clients.size() + kMostUnknownClients + 2);
  CHECK(clients.front().is_hung_up());
  ranks[0].join(1);
  CHECK(ranks.is_welcome());
  CHECK(ranks.learns_the_end());
}

TEST_CASE(
    "looks accept many clients in bounded batches, and wake a sleeping rank until all are "
    "accepted") {
  Watching ranks(true);
  std::vector<RawConnection> clients;
  for (int i = 0; i < 300; ++i) clients.emplace_back(ranks[0].address().tcp_port);
  const auto before = open_descriptors().size();
  ranks[0].look();
  CHECK(open_descriptors().size() <= before + kMostUnknownClients + 2);
  pollfd watched{ranks[0].descriptor(), POLLIN, 0};
  int looks = 1;
  for (; ::poll(&watched, 1, 0) == 1 && looks < 1000; ++looks) ranks[0].look();
  CHECK(looks >= 300 / kMostUnknownClients);
  CHECK(looks < 1000);  // silent clients that are already accepted wake no rank
}

TEST_CASE(
    "unknown clients that connect and disconnect without end do not keep liveness from its ranks") {
  Watching ranks(true);
  ranks[0].join(1);
  std::atomic<bool> is_over{false};
  std::atomic<int> knocks{0};
  const std::uint16_t port = ranks[0].address().tcp_port;
  std::thread scan([&] {
    for (int i = 0; !is_over.load(); ++i, ++knocks) {
      std::string why;
      const auto socket = posix::start_connecting(posix::resolve("127.0.0.1", port, why).at(0));
      const linger reset{1, 0};
      ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      pollfd watched{socket.get(), POLLOUT, 0};
      if (i % 2 == 0) ::poll(&watched, 1, 20'000);
    }
  });
  bool is_well = true;
  while (is_well && knocks.load() < 2000) is_well = ranks.is_welcome();
  is_well &= ranks.learns_the_end();
  is_over.store(true);
  scan.join();
  CHECK(is_well);
}

TEST_CASE("the last word of a rank arrives behind many unknown clients") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Watching ranks(is_apart);
    std::vector<RawConnection> clients;
    for (int i = 0; i < 300; ++i) clients.emplace_back(ranks[0].address().tcp_port);
    ranks[1].join(0);
    for (int i = 0; i < 5; ++i) ranks[1].look();
    ranks[1].leave_words([](int) { return std::uint64_t{7}; });
    ranks.all[1].reset();
    ranks[0].join(1);
    CHECK(ranks.until([&] { return ranks[0].is_gone(1); }));
    CHECK(ranks[0].last_word(1) == 7);
  }
}

TEST_CASE(
    "a rank whose connection closes before its welcome reconnects, and then learns of the end") {
  Impostor peer;
  std::optional<RawConnection> line;
  for (int i = 0; i < 10; ++i) {
    line.emplace(peer.accept());
    CHECK_FALSE(peer.real.is_gone(1));
    line.reset();
  }
  line.emplace(peer.accept());
  std::string heard;
  CHECK(peer.until([&] { return (heard += line->hear_now()).size() >= 16; }));
  CHECK(heard == hello(7, 0));
  line->say(word(peer.real.address().ticket) + word(9));
  CHECK(peer.until([&] { return peer.real.last_word(1) == 9; }));
  CHECK_FALSE(peer.real.is_gone(1));
  line.reset();
  CHECK(peer.until([&] { return peer.real.is_gone(1); }));
}

TEST_CASE("an impostor with a wrong answer is not taken for the rank") {
  for (const std::string& speech :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string(100'000, 'x'), hello(7, 0)}) {
    Impostor peer;
    RawConnection line = peer.accept();
    line.say(speech.substr(0, 4096));
    CHECK(peer.until([&] { return peer.real.is_gone(1); }));
    CHECK_FALSE(peer.real.last_word(1));
  }
}

TEST_CASE("an impostor that always closes the connection is not taken for the rank") {
  Impostor peer;
  CHECK(peer.until([&] {
    posix::accept_from(peer.place);
    return peer.real.is_gone(1);
  }));
}

TEST_CASE("a silent impostor neither ends the rank nor gives its last word") {
  Impostor peer;
  RawConnection line = peer.accept();
  for (int i = 0; i < 100; ++i) peer.real.look();
  CHECK_FALSE(peer.real.is_gone(1));
  CHECK_FALSE(peer.real.last_word(1));
}

}  // namespace kolo::test
