// Channels on streams, over a fake machine: data, order, and that hosts never block.
#include <cstring>
#include <optional>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/cuda/fake_ranks.h"
#include "transports/cuda/backlog.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;
using Kind = FakeDriver::Kind;

namespace {

// Two ranks with a stream each; one thread runs both in turn.
struct Pair {
  explicit Pair(Adjust adjust = nullptr) : ranks(make_fake_ranks(machine, 2, adjust)) {
    for (std::size_t i = 0; i < 2; ++i) streams[i] = ranks[i].driver->make_stream();
    begin();
  }
  ~Pair() { close(); }

  StreamChannel& to_other(std::size_t rank) {
    return ranks[rank].stream_to(1 - static_cast<int>(rank));
  }
  void begin() {
    for (std::size_t i = 0; i < 2; ++i) to_other(i).begin(streams[i]);
  }
  void end() {
    for (std::size_t i = 0; i < 2; ++i) to_other(i).end(streams[i]);
  }
  void close() { close_together(ranks); }

  std::byte* memory(std::size_t rank, std::size_t bytes, int seed, Kind kind = Kind::kDevice) {
    std::byte* const made = ranks[rank].driver->make_memory(bytes, kind);
    for (std::size_t i = 0; i < bytes; ++i)
      made[i] = static_cast<std::byte>(static_cast<int>(i % 251) + seed);
    return made;
  }

  FakeMachine machine;
  std::vector<FakeRank> ranks;
  cuda::Stream streams[2] = {};
};

bool is_equal(const std::byte* one, const std::byte* other, std::size_t bytes) {
  return std::memcmp(one, other, bytes) == 0;
}

std::optional<Error> error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE(
    "slots carry segments in order, and the sender's stream waits for credit instead of its host") {
  Pair pair;
  StreamChannel& out = pair.to_other(0);
  StreamChannel& in = pair.to_other(1);
  std::byte* const numbers = pair.memory(0, 64 * 20, 0);
  for (std::size_t i = 0; i < 20; ++i) {
    std::byte* const slot = out.reserve(pair.streams[0], 64);
    pair.ranks[0].driver->copy(reinterpret_cast<cuda::Address>(slot),
                               reinterpret_cast<cuda::Address>(numbers + 64 * i), 64,
                               pair.streams[0]);
    out.commit(pair.streams[0], kPlain);
  }
  CHECK_FALSE(pair.machine.run());  // 4 have arrived, 16 wait
  std::byte* const into = pair.memory(1, 64 * 20, 99);
  for (std::size_t i = 0; i < 20; ++i) {
    const std::byte* const segment = in.view(pair.streams[1], 64);
    pair.ranks[1].driver->copy(reinterpret_cast<cuda::Address>(into + 64 * i),
                               reinterpret_cast<cuda::Address>(segment), 64, pair.streams[1]);
    in.release(pair.streams[1]);
  }
  CHECK(pair.machine.run());
  CHECK(is_equal(into, numbers, 64 * 20));
  const auto& counts = pair.ranks[1].transport->channel(0).statistics();
  CHECK(counts.bytes_received == 64 * 20);
  CHECK(counts.segments_received == 20);
  pair.end();
  pair.close();
  CHECK(pair.machine.violations().empty());
}

TEST_CASE("two ranks need one hardware queue each, since a rank's own stream writes and waits") {
  Pair pair;
  pair.machine.hardware_queues = 1;
  std::byte* const from = pair.memory(0, 50'000, 3);
  std::byte* const into = pair.memory(1, 50'000, 9);
  for (int i = 0; i < 12; ++i) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      REQUIRE(pair.to_other(rank).reserve(pair.streams[rank], 64) != nullptr);
      pair.to_other(rank).commit(pair.streams[rank], kPlain);
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      REQUIRE(pair.to_other(rank).view(pair.streams[rank], 64) != nullptr);
      pair.to_other(rank).release(pair.streams[rank]);
    }
  }
  REQUIRE(pair.to_other(0).send(pair.streams[0], {from, 50'000}, kPlain));
  REQUIRE(pair.to_other(1).receive(pair.streams[1], {into, 50'000}, kPlain));
  pair.to_other(0).drain(pair.streams[0]);
  CHECK(pair.machine.run());
  CHECK(is_equal(into, from, 50'000));
  pair.end();
  pair.close();
  CHECK(pair.machine.violations().empty());
}

TEST_CASE("a rank that receives first enqueues a wait, and its host continues") {
  Pair pair;
  const std::byte* const segment = pair.to_other(1).view(pair.streams[1], 8);
  CHECK(segment != nullptr);
  pair.to_other(1).release(pair.streams[1]);
  CHECK_FALSE(pair.machine.run());
  pair.to_other(0).reserve(pair.streams[0], 8);
  pair.to_other(0).commit(pair.streams[0], kPlain);
  CHECK(pair.machine.run());
  pair.end();
}

TEST_CASE("memory is read directly by the peer, as a whole, and is opened once") {
  Pair pair;
  constexpr std::size_t kBytes = 100'000;
  std::byte* const from = pair.memory(0, 2 * kBytes, 0);
  std::byte* const into = pair.memory(1, kBytes, 50);
  CHECK_FALSE(pair.to_other(1).receive(pair.streams[1], {into, kBytes}, kPlain));
  CHECK_FALSE(pair.ranks[1].transport->arm());  // there would be no wake-up
  const int copies = pair.ranks[0].driver->calls("copy");
  for (std::size_t i = 0; i < 10; ++i) {
    REQUIRE(pair.to_other(0).send(pair.streams[0], {from + i, kBytes}, kPlain));
    REQUIRE(pair.to_other(1).receive(pair.streams[1], {into, kBytes}, kPlain));
    CHECK(pair.machine.run());
    CHECK(is_equal(into, from + i, kBytes));
  }
  CHECK(pair.ranks[0].driver->calls("copy") == copies);
  CHECK(pair.ranks[1].driver->calls("ipc_open") == 2);  // the slots, and this allocation
  pair.end();
  pair.close();
  CHECK(pair.machine.violations().empty());
}

TEST_CASE("memory that cannot be exported goes through the slots and arrives unchanged") {
  for (const Kind kind : {Kind::kManaged, Kind::kVirtual, Kind::kPool}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096},
                                    std::size_t{4097}, std::size_t{50'000}}) {
      INFO(static_cast<int>(kind) << ", " << bytes << " bytes");
      Pair pair;
      std::byte* const from = pair.memory(0, bytes + 1, 3, kind);
      std::byte* const into = pair.memory(1, bytes + 1, 50);
      REQUIRE(pair.to_other(0).send(pair.streams[0], {from, bytes}, kPlain));
      REQUIRE(pair.to_other(1).receive(pair.streams[1], {into, bytes}, kPlain));
      CHECK(pair.machine.run());
      CHECK(is_equal(into, from, bytes));
      REQUIRE(pair.to_other(0).send(pair.streams[0], {from, bytes}, kPlain));
      const std::byte* const seen = pair.to_other(1).view_sent(pair.streams[1], bytes);
      REQUIRE(seen != nullptr);
      CHECK(pair.machine.run());
      CHECK(is_equal(seen, from, bytes));
      pair.to_other(1).release(pair.streams[1]);
      pair.end();
      pair.close();
      CHECK(pair.machine.violations().empty());
    }
  }
}

TEST_CASE("drain() makes the stream wait until the peer has read the lent memory") {
  Pair pair;
  std::byte* const from = pair.memory(0, 64, 0);
  pair.to_other(0).drain(pair.streams[0]);
  CHECK(pair.machine.run());
  REQUIRE(pair.to_other(0).send(pair.streams[0], {from, 64}, kPlain));
  pair.to_other(0).drain(pair.streams[0]);
  CHECK_FALSE(pair.machine.run());
  const std::byte* const seen = pair.to_other(1).view_sent(pair.streams[1], 64);
  REQUIRE(seen != nullptr);
  CHECK(is_equal(seen, from, 64));
  CHECK_FALSE(pair.machine.run());
  pair.to_other(1).release(pair.streams[1]);
  CHECK(pair.machine.run());
  pair.end();
}

TEST_CASE("a host far ahead of its peer must retry later, and no queue of the driver overflows") {
  Pair pair;
  StreamChannel& out = pair.to_other(0);
  StreamChannel& in = pair.to_other(1);
  std::byte* const memory[] = {pair.memory(0, 64, 0), pair.memory(1, 64, 0)};
  int sent = 0;
  for (; sent < 2000 && out.reserve(pair.streams[0], 8) != nullptr; ++sent)
    out.commit(pair.streams[0], kPlain);
  CHECK(sent == 2 * cuda::Backlog::kMarkEvery);
  CHECK_FALSE(pair.ranks[0].transport->arm());  // there would be no wake-up
  CHECK_FALSE(out.send(pair.streams[0], {memory[0], 64}, kPlain));
  CHECK(out.view(pair.streams[0], 8) == nullptr);
  for (int taken = 0; taken < sent; ++taken) {
    REQUIRE(in.view(pair.streams[1], 8) != nullptr);
    in.release(pair.streams[1]);
  }
  CHECK(pair.machine.run());
  for (int i = 0; i < 8; ++i) {
    REQUIRE(out.reserve(pair.streams[0], 8) != nullptr);
    out.commit(pair.streams[0], kPlain);
  }
  int taken = 0;
  for (; taken < 2000 && in.view(pair.streams[1], 8) != nullptr; ++taken)
    in.release(pair.streams[1]);
  CHECK(taken >= 2 * cuda::Backlog::kMarkEvery);
  CHECK(taken <= 3 * cuda::Backlog::kMarkEvery);
  REQUIRE(out.send(pair.streams[0], {memory[0], 64}, kPlain));
  CHECK_FALSE(in.receive(pair.streams[1], {memory[1], 64}, kPlain));
  CHECK(in.view_sent(pair.streams[1], 64) == nullptr);
  pair.end();
  pair.close();
  CHECK(pair.machine.violations().empty());
}

TEST_CASE("announcements are bounded: the host must retry later") {
  Pair pair;
  std::byte* const from = pair.memory(0, 64, 0);
  int sent = 0;
  while (pair.to_other(0).send(pair.streams[0], {from, 64}, kPlain)) ++sent;
  CHECK(sent == 32);
  std::byte* const into = pair.memory(1, 64, 0);
  CHECK(pair.to_other(1).receive(pair.streams[1], {into, 64}, kPlain));
  CHECK(pair.to_other(0).send(pair.streams[0], {from, 64}, kPlain));
  for (int i = 0; i < 32; ++i)
    REQUIRE(pair.to_other(1).receive(pair.streams[1], {into, 64}, kPlain));
  CHECK(pair.machine.run());
  pair.end();
}

TEST_CASE("memory allocated anew at an old address is opened again, and the old mapping closed") {
  Pair pair;
  std::byte* const from = pair.memory(0, 4096, 0);
  std::byte* const into = pair.memory(1, 4096, 9);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(pair.to_other(0).send(pair.streams[0], {from, 4096}, kPlain));
    REQUIRE(pair.to_other(1).receive(pair.streams[1], {into, 4096}, kPlain));
    pair.end();
    pair.begin();
    pair.ranks[0].driver->replace(from);
  }
  CHECK(pair.ranks[1].driver->calls("ipc_open") == 4);  // the slots and three allocations
  CHECK(pair.ranks[1].driver->calls("ipc_close") == 2);
  pair.end();
}

TEST_CASE(
    "new memory at an address that a stream still reads is not received before that read is done") {
  Pair pair;
  std::byte* const from = pair.memory(0, 4096, 0);
  std::byte* const into = pair.memory(1, 4096, 9);
  pair.machine.run_when_told();
  REQUIRE(pair.to_other(0).send(pair.streams[0], {from, 4096}, kPlain));
  REQUIRE(pair.to_other(1).receive(pair.streams[1], {into, 4096}, kPlain));
  pair.end();
  pair.begin();
  pair.ranks[0].driver->replace(from);
  REQUIRE(pair.to_other(0).send(pair.streams[0], {from, 4096}, kPlain));
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(pair.to_other(1).receive(pair.streams[1], {into, 4096}, kPlain));
    CHECK(pair.to_other(1).view_sent(pair.streams[1], 4096) == nullptr);
    CHECK_FALSE(pair.ranks[1].transport->arm());
  }
  CHECK(pair.machine.run());
  CHECK(pair.to_other(1).view_sent(pair.streams[1], 4096) != nullptr);
  pair.to_other(1).release(pair.streams[1]);
  CHECK(pair.machine.run());
  CHECK(pair.ranks[1].driver->calls("ipc_open") == 3);  // the slots and two allocations
  CHECK(pair.ranks[1].driver->calls("ipc_close") == 1);
  pair.machine.run_at_once();
  pair.end();
  pair.close();
  CHECK(pair.machine.violations().empty());
}

TEST_CASE("a batch on another stream waits for the last batch, whose stream may be gone") {
  Pair pair;
  pair.to_other(1).view(pair.streams[1], 8);
  pair.to_other(1).release(pair.streams[1]);
  pair.end();
  pair.ranks[1].driver->destroy_stream(pair.streams[1]);
  pair.streams[1] = pair.ranks[1].driver->make_stream();
  pair.begin();
  CHECK_FALSE(pair.machine.run());  // the new stream waits for the event
  pair.to_other(0).reserve(pair.streams[0], 8);
  pair.to_other(0).commit(pair.streams[0], kPlain);
  CHECK(pair.machine.run());
  pair.end();
}

TEST_CASE("wrong calls on a stream are errors of the caller") {
  Pair pair;
  StreamChannel& out = pair.to_other(0);
  const cuda::Stream other = pair.ranks[0].driver->make_stream();
  CHECK_THROWS_AS(out.begin(pair.streams[0]), std::invalid_argument);
  CHECK_THROWS_AS(out.reserve(other, 8), std::invalid_argument);
  CHECK_THROWS_AS(out.commit(pair.streams[0], kPlain), std::invalid_argument);
  CHECK_THROWS_AS(out.release(pair.streams[0]), std::invalid_argument);
  CHECK_THROWS_AS(out.reserve(pair.streams[0], 4097), std::invalid_argument);
  std::byte on_host[8] = {};
  CHECK_THROWS_WITH(out.send(pair.streams[0], on_host, kPlain),
                    ContainsSubstring("host memory that no device reaches"));
  CHECK_THROWS_WITH(out.receive(pair.streams[0], on_host, kPlain),
                    ContainsSubstring("host memory that no device reaches"));
  pair.end();
  CHECK_THROWS_AS(out.reserve(pair.streams[0], 8), std::invalid_argument);
  pair.begin();
  REQUIRE(out.send(pair.streams[0], {pair.memory(0, 64, 0), 64}, kPlain));
  const auto error = error_of([&] {
    pair.to_other(1).receive(pair.streams[1], {pair.memory(1, 32, 0), 32}, kPlain);
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kMismatch);
  CHECK_THAT(error->what(), ContainsSubstring("rank 0 sends 64 bytes"));
  CHECK_THROWS_WITH(pair.to_other(1).view(pair.streams[1], 8), ContainsSubstring("sends 64 bytes"));
}

TEST_CASE("quiesce() frees a stream that waits for a peer, and later calls report the loss") {
  Pair pair;
  pair.to_other(1).view(pair.streams[1], 8);
  pair.to_other(1).release(pair.streams[1]);
  pair.to_other(1).end(pair.streams[1]);
  std::thread closing([&] { pair.ranks[1].transport->quiesce(); });
  const auto lost = error_of([&] {
    const auto until = Clock::now() + std::chrono::seconds(60);
    while (Clock::now() < until) pair.ranks[0].transport->progress();
  });
  REQUIRE(lost);
  CHECK(lost->code() == ErrorCode::kPeerLost);
  CHECK(lost->peer() == 1);
  CHECK_THAT(lost->what(), ContainsSubstring("while its streams were at work"));
  pair.ranks[0].transport->quiesce();
  closing.join();
  const auto closed = error_of([&] { pair.to_other(1).view(pair.streams[1], 8); });
  REQUIRE(closed);
  CHECK(closed->code() == ErrorCode::kAborted);
  pair.close();
  CHECK(pair.machine.run());
  CHECK(pair.machine.violations().empty());
}

TEST_CASE(
    "data sent before a rank ended is read after its end, and later reads report a lost peer") {
  Pair pair;
  std::byte* const slot = pair.to_other(0).reserve(pair.streams[0], 8);
  const std::byte* const eight = pair.memory(0, 8, 77);
  pair.ranks[0].driver->copy(reinterpret_cast<cuda::Address>(slot),
                             reinterpret_cast<cuda::Address>(eight), 8, pair.streams[0]);
  pair.to_other(0).commit(pair.streams[0], kPlain);
  pair.to_other(0).end(pair.streams[0]);
  std::thread closing([&] { pair.ranks[0].transport.reset(); });
  const std::byte* const seen = pair.to_other(1).view(pair.streams[1], 8);
  CHECK(is_equal(seen, eight, 8));
  pair.to_other(1).release(pair.streams[1]);
  pair.to_other(1).end(pair.streams[1]);
  pair.to_other(1).begin(pair.streams[1]);
  const auto lost = error_of([&] {
    const auto until = Clock::now() + std::chrono::seconds(60);
    while (Clock::now() < until) {
      if (pair.to_other(1).reserve(pair.streams[1], 0) != nullptr)
        pair.to_other(1).commit(pair.streams[1], kPlain);
      pair.ranks[1].transport->progress();
    }
  });
  REQUIRE(lost);
  CHECK_THAT(lost->what(), ContainsSubstring("it has closed its transport"));
  pair.ranks[1].transport->quiesce();
  closing.join();
  pair.close();
  CHECK(pair.machine.violations().empty());
}

namespace {

// A rank that closes waits no longer than this for peers that make no progress.
void closes_soon(int, FakeDriver&, CudaIpcSettings& settings) {
  settings.patience = std::chrono::milliseconds(100);
}

void run_to_the_end(FakeMachine& machine) {
  const auto until = Clock::now() + std::chrono::seconds(60);
  while (!machine.run()) REQUIRE(Clock::now() < until);
}

}  // namespace

TEST_CASE("a stream is freed from its wait for an ended peer while its host makes no progress") {
  for (const bool is_at_work : {false, true}) {
    INFO("the peer ends inside a batch: " << is_at_work);
    Pair pair(closes_soon);
    pair.to_other(0).view(pair.streams[0], 8);
    pair.to_other(0).release(pair.streams[0]);
    pair.to_other(0).end(pair.streams[0]);
    if (!is_at_work) pair.to_other(1).end(pair.streams[1]);
    CHECK_FALSE(pair.machine.run());
    pair.to_other(0).require_whole();
    std::thread closing([&] { pair.ranks[1].transport.reset(); });
    run_to_the_end(pair.machine);
    closing.join();
    const auto look_after = [&] {
      for (int i = 0; i < 64; ++i) pair.ranks[0].transport->progress();
    };
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { pair.to_other(0).require_whole(); }, look_after, look_after}) {
      const auto error = error_of(call);
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::kPeerLost);
      CHECK(error->peer() == 1);
      CHECK_THAT(error->what(), ContainsSubstring("closed its transport"));
    }
    pair.close();
    CHECK(pair.machine.violations().empty());
  }
}

TEST_CASE("a rank whose streams were freed from a lost peer warns the other ranks") {
  FakeMachine machine;
  auto ranks = make_fake_ranks(machine, 3, closes_soon);
  const cuda::Stream stream = ranks[0].driver->make_stream();
  StreamChannel& to_lost = ranks[0].stream_to(1);
  to_lost.begin(stream);
  to_lost.view(stream, 8);
  to_lost.end(stream);
  std::thread closing([&] { ranks[1].transport.reset(); });
  run_to_the_end(machine);
  closing.join();
  const auto error = error_of([&] { ranks[2].stream_to(0).require_whole(); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::kPeerLost);
  CHECK(error->peer() == 1);
  CHECK_THAT(error->what(),
             ContainsSubstring("rank 2: cannot trust the data from rank 0 on a stream") &&
                 ContainsSubstring("rank 1 has ended"));
  ranks[2].stream_to(1).require_whole();  // it had all that it needs
  close_together(ranks);
}

TEST_CASE("a peer that ends after all its work frees no stream, and breaks nothing") {
  Pair pair;
  pair.to_other(1).reserve(pair.streams[1], 8);
  pair.to_other(1).commit(pair.streams[1], kPlain);
  pair.to_other(0).view(pair.streams[0], 8);
  pair.to_other(0).release(pair.streams[0]);
  CHECK(pair.machine.run());
  pair.end();
  std::thread closing([&] { pair.ranks[1].transport.reset(); });
  for (int i = 0; i < 1000; ++i) {
    pair.ranks[0].transport->progress();
    pair.to_other(0).require_whole();
  }
  pair.ranks[0].transport->quiesce();
  closing.join();
  pair.close();
  CHECK(pair.machine.violations().empty());
  CHECK(pair.machine.left_over().find("memory of") == std::string::npos);
}

TEST_CASE("the error for a driver call that fails on a stream names it, and the end is clean") {
  for (const char* function : {"word_operations", "copy", "ipc_open", "record_event",
                               "pointer_attribute", "capture_of", "create_stream", "wait_event"}) {
    INFO(function);
    // An event that could not be recorded never completes: the end waits this long.
    Pair pair([](int, FakeDriver&, CudaIpcSettings& settings) {
      settings.patience = std::chrono::milliseconds(200);
    });
    pair.end();
    std::byte* const from = pair.memory(0, 10'000, 0, Kind::kPool);
    std::byte* const straight = pair.memory(0, 64, 0);
    std::byte* const into = pair.memory(1, 10'000, 0);
    for (auto& rank : pair.ranks) rank.driver->fail(function, 999);
    const auto error = error_of([&] {
      pair.begin();
      for (int i = 0; i < 8; ++i) {
        pair.to_other(0).send(pair.streams[0], {straight, 64}, kPlain);
        pair.to_other(1).receive(pair.streams[1], {into, 64}, kPlain);
      }
      pair.to_other(0).send(pair.streams[0], {from, 10'000}, kPlain);
      pair.to_other(1).receive(pair.streams[1], {into, 10'000}, kPlain);
      pair.end();
    });
    REQUIRE(error);
    CHECK_THAT(error->what(), ContainsSubstring("the driver's error 999"));
    pair.close();
    CHECK(pair.machine.violations().empty());
  }
}
