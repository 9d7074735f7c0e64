// Socket results of the kernel that need interpretation.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <span>
#include <string>
#include <thread>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/transports/support/forked_child.h"
#include "transports/error.h"
#include "transports/posix/socket.h"
#include "transports/posix/unix_socket.h"

using namespace kolo::posix;

namespace {

using Ends = std::array<Descriptor, 2>;

constexpr std::array<std::byte, 2> kLastWords{std::byte{1}, std::byte{2}};

Ends make_ends() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) ==
          0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Waits for the next message.
Message next_message(const Descriptor& end) {
  std::array<std::byte, 8> into{};
  Message message;
  while ((message = receive_message(end.get(), into)).what == Received::kNothing) {
  }
  return message;
}

void await(const std::atomic<int>& word, int value) {
  while (word.load(std::memory_order_acquire) != value) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a forked child keeps neither a connection nor a port") {
  Descriptor listener = listen_on("127.0.0.1", 0);
  const Address address = local_address(listener);
  Descriptor client = start_connecting(address);
  pollfd watched{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&watched, 1, 20'000) == 1);
  const Descriptor server = accept_from(listener);
  UnixListener unix_listener(1);
  auto near_client = connect_unix(unix_listener.name());
  REQUIRE(near_client);
  const auto near_server = unix_listener.accept();
  REQUIRE(near_server);
  const kolo::test::ForkedChild child;
  client.close();
  near_client->close();
  for (const Descriptor* end : {&server, &*near_server}) {
    pollfd ended{end->get(), POLLIN, 0};
    REQUIRE(::poll(&ended, 1, 20'000) == 1);
    std::array<std::byte, 1> into{};
    CHECK(receive_some(*end, into.data(), into.size()).is_closed);
  }
  listener.close();
  CHECK_NOTHROW(listen_on("127.0.0.1", address.port()));
}

TEST_CASE("a forked child may close its copies: no descriptor of another owner is closed") {
  Descriptor listener = listen_on("127.0.0.1", 0);
  const int number = listener.get();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_reserved = ::fcntl(number, F_GETFD) >= 0;
    const Descriptor another = start_connecting(local_address(listen_on("127.0.0.1", 0)));
    const bool is_apart = another.is_open() && another.get() != number;
    listener.close();
    ::_exit(is_reserved && is_apart && ::fcntl(another.get(), F_GETFD) >= 0 ? 7 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}

TEST_CASE("the errors for a lack of free ports, a taken port and a foreign address differ") {
  CHECK(connect_error_text(ECONNREFUSED) == "Connection refused");
  CHECK_THAT(connect_error_text(EADDRNOTAVAIL),
             ContainsSubstring("no free port is left for the connection: ") &&
                 ContainsSubstring("net.ipv4.ip_local_port_range"));
  const Descriptor taken = listen_on("127.0.0.1", 0);
  CHECK_THROWS_WITH(listen_on("127.0.0.1", local_address(taken).port()),
                    ContainsSubstring("another program has it, choose another port"));
  CHECK_THROWS_WITH(listen_on("192.0.2.1", 0),
                    ContainsSubstring("a free port of 192.0.2.1: this host has no such address"));
}

// In a network namespace of its own, with two ports.
TEST_CASE("a rank that finds no free port to listen on says so") {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int kCannot = 4;
    if (::unshare(CLONE_NEWNET) != 0) ::_exit(kCannot);
    if (!(std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << "40000 40001\n").flush())
      ::_exit(kCannot);
    const Descriptor first = listen_on("", 0);
    const Descriptor second = listen_on("", 0);
    try {
      listen_on("", 0);
    } catch (const kolo::Error& error) {
      const std::string text = error.what();
      ::_exit(text.starts_with("cannot listen on a free port of all addresses: no free port is")
                  ? 7
                  : 2);
    }
    ::_exit(1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 4) WARN("skipped: network namespaces cannot be made here");
  CHECK((WEXITSTATUS(status) == 7 || WEXITSTATUS(status) == 4));
}

// The kernel reports the reset once before it delivers the queued data.
TEST_CASE("the last message is received from a peer that closed with unread data") {
  Ends ends = make_ends();
  REQUIRE(send_message(ends[0].get(), kLastWords));
  REQUIRE(send_message(ends[1].get(), kLastWords));
  ends[1].close();
  const Message message = next_message(ends[0]);
  CHECK(message.what == Received::kMessage);
  CHECK(message.bytes == kLastWords.size());
  CHECK(next_message(ends[0]).what == Received::kClosed);
}

TEST_CASE(
    "the last message is also received by receive_some() from a peer that closed with unread "
    "data") {
  Ends ends = make_ends();
  REQUIRE(send_message(ends[0].get(), kLastWords));
  REQUIRE(send_message(ends[1].get(), kLastWords));
  ends[1].close();
  std::array<std::byte, 8> into{};
  CHECK(receive_some(ends[0], into.data(), into.size()).bytes == kLastWords.size());
  CHECK(receive_some(ends[0], into.data(), into.size()).is_closed);
}

// The kernel may check the queue before the message arrives, and the end of the stream afterwards.
// This happens once in some ten thousand rounds if each thread has a core.
TEST_CASE("the last message is received from a peer that closes at once") {
  const int rounds = kolo::test::all_or_few({10'000}, {500}).front();
  std::atomic<int> begun{0};
  Ends ends;
  std::thread speaker([&] {
    for (int round = 1; round <= rounds; ++round) {
      await(begun, round);
      send_message(ends[1].get(), kLastWords);
      ends[1].close();
      begun.store(-round, std::memory_order_release);
    }
  });
  int lost = 0;
  for (int round = 1; round <= rounds; ++round) {
    ends = make_ends();
    begun.store(round, std::memory_order_release);
    if (next_message(ends[0]).what != Received::kMessage) ++lost;
    await(begun, -round);
  }
  speaker.join();
  CHECK(lost == 0);
}

// This happens if the kernel chooses that port as the local port.
TEST_CASE("a socket that connected to itself is treated as refused and leaves the port free") {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
  const Address own = local_address(socket);
  REQUIRE(::connect(socket.get(), own.get(), own.length()) == 0);
  CHECK(connect_result(socket) == ECONNREFUSED);
  socket.close();
  CHECK_NOTHROW(listen_on("127.0.0.1", own.port()));
}

TEST_CASE("a connection to a listener is not taken for a connection to itself") {
  const Descriptor listener = listen_on("127.0.0.1", 0);
  REQUIRE(listener.is_open());
  const Descriptor socket = start_connecting(local_address(listener));
  pollfd watched{socket.get(), POLLOUT, 0};
  REQUIRE(::poll(&watched, 1, 20'000) == 1);
  CHECK(connect_result(socket) == 0);
}
