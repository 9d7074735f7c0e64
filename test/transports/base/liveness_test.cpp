// Liveness detects the ranks that have ended, and only those.
#include "transports/base/liveness.h"

#include <poll.h>

#include "test/support/catch.h"
#include "test/transports/base/liveness_ranks.h"
#include "transports/posix/unix_socket.h"

namespace kolo {

using Ranks = test::LivenessRanks;

TEST_CASE("the last word of a rank arrives although the rank is gone") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Ranks ranks(3);
    if (is_apart) ranks.move_apart();
    ranks[0].join(1);
    ranks[1].join(2);
    ranks[1].join(0);
    for (int i = 0; i < 100; ++i) {
      for (const auto& each : ranks.all) each->look();
    }
    CHECK_FALSE(ranks[0].last_word(1));
    ranks[1].leave_words(
        [](int peer) { return 0x0102030405060708u + static_cast<unsigned>(peer); });
    ranks.all[1].reset();
    CHECK(ranks.until([&] { return ranks[0].is_gone(1) && ranks[2].is_gone(1); }));
    CHECK(ranks[0].last_word(1) == 0x0102030405060708u);
    CHECK(ranks[2].last_word(1) == 0x010203040506070Au);
  }
}

TEST_CASE("the last word arrives at a rank that has not looked since its peer connected") {
  Ranks ranks(2);
  ranks[0].join(1);
  ranks[1].join(0);
  ranks[1].leave_words([](int) { return std::uint64_t{7}; });
  ranks.all[1].reset();
  CHECK(ranks.until([&] { return ranks[0].is_gone(1); }));
  CHECK(ranks[0].last_word(1) == 7);
}

TEST_CASE("the last word arrives at a rank that connects only after its peer has ended") {
  Ranks ranks(2);
  ranks[1].join(0);
  ranks[1].leave_words([](int) { return std::uint64_t{7}; });
  ranks.all[1].reset();
  ranks[0].join(1);
  CHECK(ranks.until([&] { return ranks[0].is_gone(1); }));
  CHECK(ranks[0].last_word(1) == 7);
}

TEST_CASE("a rank learns of the end of the ranks that it has joined, and of no others") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Ranks ranks(3);
    if (is_apart) ranks.move_apart();
    ranks[0].join(1);
    ranks[2].join(1);
    ranks[2].join(0);
    for (int i = 0; i < 100; ++i) {
      for (const auto& each : ranks.all) each->look();
    }
    CHECK(ranks[0].gone() == 0);
    ranks.all[1].reset();
    CHECK(ranks.until([&] { return ranks[0].is_gone(1) && ranks[2].is_gone(1); }));
    CHECK(ranks[0].gone() == 1);
    CHECK_FALSE(ranks[2].is_gone(0));
    CHECK_FALSE(ranks[0].is_gone(2));
  }
}

TEST_CASE("a rank that joins an ended rank learns of its end") {
  for (const bool is_apart : {false, true}) {
    INFO((is_apart ? "over TCP" : "over unix sockets"));
    Ranks ranks(2);
    if (is_apart) ranks.move_apart();
    ranks.all[1].reset();
    ranks[0].join(1);
    CHECK(ranks.until([&] { return ranks[0].is_gone(1); }));
  }
}

TEST_CASE("a rank that accepted a connection learns of the end of the connecting rank") {
  Ranks ranks(2);
  ranks[0].join(1);
  CHECK(ranks.until([&] { return true; }));
  ranks[1].look();
  ranks.all[0].reset();
  CHECK(ranks.until([&] { return ranks[1].is_gone(0); }));
}

TEST_CASE("the end of a rank wakes a sleeping rank, and handled events keep no rank awake") {
  Ranks ranks(2);
  ranks[0].join(1);
  for (int i = 0; i < 100; ++i) {
    ranks[0].look();
    ranks[1].look();
  }
  pollfd watched{ranks[0].descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  ranks.all[1].reset();
  CHECK(::poll(&watched, 1, 10'000) == 1);
  CHECK(ranks.until([&] { return ranks[0].is_gone(1); }));
  CHECK(::poll(&watched, 1, 0) == 0);
}

TEST_CASE("a client with the wrong ticket does not become a peer") {
  Ranks ranks(2);
  auto unknown_client = posix::connect_unix(ranks[0].address().unix_name);
  REQUIRE(unknown_client);
  const std::uint64_t hello[2] = {ranks[0].address().ticket + 1, 1};
  CHECK(posix::send_message(unknown_client->get(), std::as_bytes(std::span(hello))));
  ranks[0].look();
  unknown_client.reset();
  for (int i = 0; i < 10; ++i) ranks[0].look();
  CHECK_FALSE(ranks[0].is_gone(1));
}

TEST_CASE("an address survives writing and reading, and invalid text is rejected") {
  const LivenessAddress address{"host", "00b1f", "fe80::1", 7, 9};
  const auto read = liveness_address_from_text(to_text(address));
  REQUIRE(read);
  CHECK(read->unix_name == "00b1f");
  CHECK(read->tcp_host == "fe80::1");
  CHECK(read->tcp_port == 7);
  CHECK(read->ticket == 9);
  for (const char* text : {"", "a b c", "a b c 70000 1", "a b c 1 x"})
    CHECK_FALSE(liveness_address_from_text(text));
}

}  // namespace kolo
