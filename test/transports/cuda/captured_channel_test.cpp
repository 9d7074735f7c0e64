// Channels on streams that are captured into graphs: the data and order of replays, and their end
// when a peer is gone.
#include <array>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_ranks.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr std::size_t kPieces = 7;  // more than there are slots
using Numbers = std::array<std::uint64_t, kPieces>;

// Two ranks, each with a stream and numbers of its own. A replay sends the own numbers, adds the
// peer's to the sums and changes the own numbers for the next replay. So the test detects which
// replays met.
struct Exchange {
  explicit Exchange(FakeMachine::Runs runs = FakeMachine::Runs::kAtOnce,
                    const Adjust& adjust = nullptr)
      : machine(1, runs), ranks(make_fake_ranks(machine, 2, adjust)) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      streams[rank] = ranks[rank].driver->make_stream();
      own[rank] = make(rank, 10 * (rank + 1));
      sums[rank] = make(rank, 0);
    }
  }

  std::uint64_t* make(std::size_t rank, std::uint64_t value) {
    auto* const numbers = reinterpret_cast<std::uint64_t*>(
        ranks[rank].driver->make_memory(sizeof(Numbers), FakeDriver::Kind::kDevice));
    for (std::size_t i = 0; i < kPieces; ++i) numbers[i] = value + i;
    return numbers;
  }
  StreamChannel& to_other(std::size_t rank) {
    return ranks[rank].stream_to(1 - static_cast<int>(rank));
  }
  void launch(std::size_t rank, cuda::Stream stream, const void* into, const void* from,
              const std::function<void(std::uint64_t& into, std::uint64_t from)>& kernel) {
    ranks[rank].driver->launch(stream, {{into, 8}, {from, 8}}, [kernel](const auto& operands) {
      std::uint64_t values[2];
      std::memcpy(&values[0], operands[0], 8);
      std::memcpy(&values[1], operands[1], 8);
      kernel(values[0], values[1]);
      std::memcpy(operands[0], &values[0], 8);
    });
  }
  void give(std::size_t rank, std::size_t piece, cuda::Stream stream) {
    std::byte* const slot = to_other(rank).reserve(stream, 8);
    REQUIRE(slot != nullptr);
    launch(rank, stream, slot, own[rank] + piece, [](auto& into, auto from) { into = from; });
    launch(rank, stream, own[rank] + piece, slot, [](auto& into, auto) { into = into * 3 + 1; });
    to_other(rank).commit(stream, kPlain);
  }
  void take(std::size_t rank, std::size_t piece, cuda::Stream stream) {
    const std::byte* const view = to_other(rank).view(stream, 8);
    launch(rank, stream, sums[rank] + piece, view,
           [](auto& into, auto from) { into = into * 5 + from; });
    to_other(rank).release(stream);
  }
  // Enqueues a whole batch on these two streams, two pieces ahead.
  void enqueue(cuda::Stream const* on) {
    for (std::size_t rank = 0; rank < 2; ++rank) to_other(rank).begin(on[rank]);
    for (std::size_t piece = 0; piece < kPieces + 2; ++piece) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        if (piece < kPieces) give(rank, piece, on[rank]);
        if (piece >= 2) take(rank, piece - 2, on[rank]);
      }
    }
    for (std::size_t rank = 0; rank < 2; ++rank) to_other(rank).drain(on[rank]);
    for (std::size_t rank = 0; rank < 2; ++rank) to_other(rank).end(on[rank]);
  }
  void capture() {
    for (std::size_t rank = 0; rank < 2; ++rank) ranks[rank].driver->capture(streams[rank]);
    enqueue(streams);
    for (std::size_t rank = 0; rank < 2; ++rank)
      graphs[rank] = ranks[rank].driver->end_capture(streams[rank]);
  }
  void replay(std::size_t rank) { ranks[rank].driver->replay(*graphs[rank], streams[rank]); }

  // Applies the effect of one batch, replayed or live, to the expected numbers.
  void expect_batch() {
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      for (std::size_t rank = 0; rank < 2; ++rank)
        expected_sums[rank][piece] = expected_sums[rank][piece] * 5 + expected_own[1 - rank][piece];
      for (std::size_t rank = 0; rank < 2; ++rank)
        expected_own[rank][piece] = expected_own[rank][piece] * 3 + 1;
    }
  }
  void start_expecting() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::memcpy(expected_own[rank].data(), own[rank], sizeof(Numbers));
      std::memcpy(expected_sums[rank].data(), sums[rank], sizeof(Numbers));
    }
  }
  bool is_as_expected() const {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      if (std::memcmp(expected_own[rank].data(), own[rank], sizeof(Numbers)) != 0) return false;
      if (std::memcmp(expected_sums[rank].data(), sums[rank], sizeof(Numbers)) != 0) return false;
    }
    return true;
  }
  void close() {
    close_together(ranks);
    CHECK(machine.violations().empty());
    CHECK(machine.left_over().find("mapping") == std::string::npos);
    CHECK(machine.left_over().find("event") == std::string::npos);
  }

  FakeMachine machine;
  std::vector<FakeRank> ranks;
  cuda::Stream streams[2] = {};
  FakeGraph* graphs[2] = {};
  std::uint64_t* own[2] = {};
  std::uint64_t* sums[2] = {};
  Numbers expected_own[2] = {};
  Numbers expected_sums[2] = {};
};

}  // namespace

TEST_CASE("captured work does nothing, and each replay sends the data of its own time") {
  Exchange both;
  both.capture();
  both.start_expecting();
  CHECK(both.is_as_expected());
  for (int round = 0; round < 3; ++round) {
    both.replay(round % 2 == 0 ? 0 : 1);
    CHECK_FALSE(both.machine.run());
    both.replay(round % 2 == 0 ? 1 : 0);
    CHECK(both.machine.run());
    both.expect_batch();
    CHECK(both.is_as_expected());
  }
  both.close();
}

TEST_CASE("a rank that replays ahead of its peer waits, and replays do not mix") {
  Exchange both;
  both.capture();
  both.start_expecting();
  for (int i = 0; i < 3; ++i) both.replay(0);
  CHECK_FALSE(both.machine.run());
  for (int i = 0; i < 3; ++i) {
    both.replay(1);
    both.expect_batch();
    CHECK(std::memcmp(both.sums[1], both.expected_sums[1].data(), sizeof(Numbers)) == 0);
  }
  CHECK(both.machine.run());
  CHECK(both.is_as_expected());
  both.close();
}

TEST_CASE("replays and live batches hold in any order in which two devices take steps") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    Exchange both(FakeMachine::Runs::kWhenTold);
    std::mt19937 random(seed);
    both.capture();
    both.start_expecting();
    constexpr int kRounds = 6;
    for (int round = 0; round < kRounds; ++round) {
      const bool is_live = random() % 3 == 0;
      if (is_live) both.enqueue(both.streams);
      for (std::size_t rank = 0; rank < 2 && !is_live; ++rank) both.replay(rank);
      both.expect_batch();
    }
    const auto bias = random() % 9 + 1;  // often one of the two is much slower
    for (int step = 0; step < 20'000; ++step)
      both.machine.step(both.streams[random() % 10 < bias ? 0 : 1]);
    CHECK(both.machine.run());
    CHECK(both.is_as_expected());
    both.close();
  }
}

TEST_CASE("live batches on other streams are independent of replays") {
  Exchange both;
  both.capture();
  both.start_expecting();
  cuda::Stream const others[2] = {both.ranks[0].driver->make_stream(),
                                  both.ranks[1].driver->make_stream()};
  both.replay(0);  // waits for rank 1
  both.enqueue(others);
  CHECK_FALSE(both.machine.run());
  both.replay(1);
  CHECK(both.machine.run());
  CHECK(both.own[0][0] == (both.expected_own[0][0] * 3 + 1) * 3 + 1);
  both.close();
}

TEST_CASE("two streams of one capture run in order, and two captures share the words") {
  Exchange both;
  cuda::Stream others[2];
  for (std::size_t rank = 0; rank < 2; ++rank) {
    auto& driver = *both.ranks[rank].driver;
    others[rank] = driver.make_stream();
    driver.capture(both.streams[rank]);
    cuda::Event fork = nullptr;
    driver.create_event(&fork, 0);
    driver.record_event(fork, both.streams[rank]);
    driver.wait_event(others[rank], fork);
    driver.destroy_event(fork);
  }
  both.enqueue(both.streams);
  const int waits = both.ranks[0].driver->calls("wait_event");
  both.enqueue(others);
  CHECK(both.ranks[0].driver->calls("wait_event") == waits + 1);
  FakeGraph* twice[2];
  for (std::size_t rank = 0; rank < 2; ++rank)
    twice[rank] = both.ranks[rank].driver->end_capture(both.streams[rank]);
  both.capture();
  both.start_expecting();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      both.ranks[rank].driver->replay(*twice[rank], both.streams[rank]);
      both.replay(rank);
    }
    CHECK(both.machine.run());
    for (int i = 0; i < 3; ++i) both.expect_batch();
    CHECK(both.is_as_expected());
  }
  both.close();
}

TEST_CASE("a capture allocates and opens nothing, so it waits for no live stream") {
  Exchange both;
  const int made = both.ranks[0].driver->calls("allocate");
  const int opened = both.ranks[0].driver->calls("ipc_open");
  cuda::Stream const live = both.ranks[0].driver->make_stream();
  both.to_other(0).begin(live);
  both.to_other(0).view(live, 8);
  both.to_other(0).release(live);
  both.to_other(0).end(live);
  both.capture();
  CHECK(both.ranks[0].driver->calls("allocate") == made);
  CHECK(both.ranks[0].driver->calls("ipc_open") == opened);
  cuda::Stream const answering = both.ranks[1].driver->make_stream();
  both.to_other(1).begin(answering);
  both.to_other(1).reserve(answering, 8);
  both.to_other(1).commit(answering, kPlain);
  both.to_other(1).end(answering);
  CHECK(both.machine.run());
  both.close();
}

TEST_CASE("a capture uses only slots, and needs no call of the peer") {
  Exchange both;
  both.ranks[0].driver->capture(both.streams[0]);
  StreamChannel& out = both.to_other(0);
  CHECK(out.why_not_captured().empty());
  out.begin(both.streams[0]);
  auto* const bytes = reinterpret_cast<std::byte*>(both.own[0]);
  CHECK_THROWS_WITH(out.send(both.streams[0], {bytes, 8}, kPlain),
                    ContainsSubstring("use slots there"));
  CHECK_THROWS_WITH(out.receive(both.streams[0], {bytes, 8}, kPlain),
                    ContainsSubstring("use slots there"));
  CHECK_THROWS_WITH(out.view_sent(both.streams[0], 8), ContainsSubstring("use slots there"));
  CHECK_THROWS_AS(out.begin(both.streams[0]), std::invalid_argument);
  CHECK(out.reserve(both.streams[0], 8) != nullptr);
  out.commit(both.streams[0], kPlain);
  CHECK_THROWS_AS(out.reserve(both.ranks[0].driver->make_stream(), 8), std::invalid_argument);
  both.close();
}

namespace {

// Rank 1 closes while rank 0 stays, so it waits for as long as it may.
void rank_1_closes_soon(int rank, FakeDriver&, CudaIpcSettings& settings) {
  if (rank == 1) settings.patience = std::chrono::milliseconds(300);
}

}  // namespace

TEST_CASE("a replay that waits for a closed peer ends with an error that names the peer") {
  Exchange both(FakeMachine::Runs::kAtOnce, rank_1_closes_soon);
  both.capture();
  for (std::size_t rank = 0; rank < 2; ++rank) both.replay(rank);
  CHECK(both.machine.run());
  both.replay(0);
  std::thread closing([&] { both.ranks[1].transport.reset(); });
  std::string said;
  while (said.empty()) {
    try {
      both.ranks[0].transport->progress();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kPeerLost);
      CHECK(error.peer() == 1);
      said = error.what();
    }
  }
  closing.join();
  CHECK_THAT(said, ContainsSubstring("with rank 1"));
  auto ended = std::async(std::launch::async, [&] { both.ranks[0].transport->quiesce(); });
  while (!both.machine.run()) std::this_thread::yield();  // meanwhile the device continues
  ended.get();
  // Later replays end as well, and touch no memory that is gone.
  for (int i = 0; i < 3; ++i) both.replay(0);
  CHECK(both.machine.run());
  CHECK(both.machine.violations().empty());
  both.close();
}

TEST_CASE("a peer that closes after the same number of replays causes no error") {
  Exchange both(FakeMachine::Runs::kAtOnce, rank_1_closes_soon);
  both.capture();
  for (std::size_t rank = 0; rank < 2; ++rank) both.replay(rank);
  CHECK(both.machine.run());
  std::thread closing([&] { both.ranks[1].transport.reset(); });
  for (int i = 0; i < 200; ++i) both.ranks[0].transport->progress();
  closing.join();
  for (int i = 0; i < 200; ++i) both.ranks[0].transport->progress();
  both.close();
}

TEST_CASE("the error for a failed driver call in a capture names the call") {
  for (const char* function : {"capture_of", "word_operations", "create_event", "record_event"}) {
    INFO(function);
    Exchange both;
    for (auto& rank : both.ranks) rank.driver->fail(function, 999);
    try {
      both.capture();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kSystem);
      CHECK_THAT(error.what(), ContainsSubstring("the driver's error 999"));
    }
    for (std::size_t rank = 0; rank < 2; ++rank)
      both.ranks[rank].driver->end_capture(both.streams[rank]);
    both.close();
  }
}
