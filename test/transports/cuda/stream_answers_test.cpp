// Answers in place between ranks that share a device.
#include <cstring>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_ranks.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr std::size_t kBytes = 20'000;  // more than a slot

// Two ranks, on devices of their own or on one.
struct Asking {
  explicit Asking(int devices)
      : machine(devices),
        ranks(make_fake_ranks(machine, 2, [devices](int rank, FakeDriver&, auto& settings) {
          settings.device = rank % devices;
        })) {
    for (std::size_t i = 0; i < 2; ++i) {
      streams[i] = ranks[i].driver->make_stream(static_cast<int>(i) % devices);
      to_other(i).begin(streams[i]);
    }
  }
  ~Asking() { close_together(ranks); }

  StreamChannel& to_other(std::size_t rank) {
    return ranks[rank].stream_to(1 - static_cast<int>(rank));
  }
  std::byte* memory(std::size_t rank, int value) {
    std::byte* const made = ranks[rank].driver->make_memory(kBytes, FakeDriver::Kind::kDevice);
    std::memset(made, value, kBytes);
    return made;
  }
  void copy(std::size_t rank, std::byte* to, const std::byte* from) {
    ranks[rank].driver->launch(
        streams[rank], {{to, kBytes}, {from, kBytes}},
        [](const auto& operands) { std::memcpy(operands[0], operands[1], kBytes); });
  }

  FakeMachine machine;
  std::vector<FakeRank> ranks;
  cuda::Stream streams[2] = {};
};

}  // namespace

TEST_CASE("streams of one device answer in place, and streams of two devices do not") {
  Asking together(1);
  CHECK(together.to_other(0).answers() != nullptr);
  Asking apart(2);
  CHECK(apart.to_other(0).answers() == nullptr);
}

TEST_CASE("an answer is written into the sender's memory, in place of what was sent or elsewhere") {
  for (const bool is_in_place : {false, true}) {
    Asking both(1);
    std::byte* const sent = both.memory(0, 1);
    std::byte* const into = is_in_place ? sent : both.memory(0, 9);
    std::byte* const answer = both.memory(1, 2);
    StreamAnswers& asker = *both.to_other(0).answers();
    StreamAnswers& peer = *both.to_other(1).answers();
    both.machine.run_when_told();
    REQUIRE(asker.send(both.streams[0], {sent, kBytes}, {into, kBytes}));
    REQUIRE(asker.receive(both.streams[0], {into, kBytes}));
    both.to_other(0).drain(both.streams[0]);
    std::byte* const seen = both.memory(0, 0);
    both.copy(0, seen, into);  // later work of the asking stream
    CHECK_FALSE(both.machine.run());
    REQUIRE(both.to_other(1).view_sent(both.streams[1], kBytes) != nullptr);
    REQUIRE(peer.place() != nullptr);
    both.copy(1, peer.place(), answer);
    both.to_other(1).release(both.streams[1]);
    CHECK(peer.place() == nullptr);
    CHECK(both.machine.run());
    CHECK(std::memcmp(seen, answer, kBytes) == 0);
    CHECK(sent[0] == (is_in_place ? std::byte{2} : std::byte{1}));
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto& counts = both.ranks[rank].transport->channel(1 - static_cast<int>(rank));
      CHECK(counts.statistics().bytes_sent == kBytes);
      CHECK(counts.statistics().bytes_received == kBytes);
      both.to_other(rank).end(both.streams[rank]);
    }
    both.machine.run_at_once();
    CHECK(both.machine.violations().empty());
  }
}

TEST_CASE("an answer whose place cannot be mapped has no place, and is received as a segment") {
  Asking both(1);
  std::byte* const sent = both.memory(0, 1);
  std::byte* const into = both.ranks[0].driver->make_memory(kBytes, FakeDriver::Kind::kPool);
  std::byte* const answer = both.memory(1, 2);
  StreamAnswers& asker = *both.to_other(0).answers();
  CHECK_THROWS_AS(asker.receive(both.streams[0], {into, kBytes}), std::invalid_argument);
  REQUIRE(asker.send(both.streams[0], {sent, kBytes}, {into, kBytes}));
  CHECK_FALSE(asker.receive(both.streams[0], {into, kBytes}));
  REQUIRE(both.to_other(1).view_sent(both.streams[1], kBytes) != nullptr);
  CHECK(both.to_other(1).answers()->place() == nullptr);
  both.to_other(1).release(both.streams[1]);
  REQUIRE(both.to_other(1).send(both.streams[1], {answer, kBytes}, kPlain));
  REQUIRE(asker.receive(both.streams[0], {into, kBytes}));
  for (std::size_t rank = 0; rank < 2; ++rank) both.to_other(rank).end(both.streams[rank]);
  CHECK(both.machine.run());
  CHECK(std::memcmp(into, answer, kBytes) == 0);
}
