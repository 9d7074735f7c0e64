// How a rank waits: spin, yield or block, for how long, and the events that end a wait.
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/store/store_table.h"
#include "transports/base/waiting.h"
#include "transports/decorators/forwarding.h"
#include "transports/error.h"
#include "transports/registry.h"

using namespace kolo;
using namespace kolo::test;
using namespace std::chrono_literals;

namespace {

Settings settings_with(WaitKind wait) {
  Settings settings;
  settings.wait = wait;
  settings.spin = 200us;
  return settings;
}

// Two ranks of this process; the test waits as rank 0.
struct Pair {
  std::shared_ptr<Store> store;
  std::unique_ptr<Transport> own;
  std::unique_ptr<Transport> other;
};

Pair make_pair_of(std::string_view transport, std::shared_ptr<Store> job) {
  Pair pair;
  pair.store = std::move(job);
  const auto make = [&](int rank) {
    return make_transport(transport,
                          {rank, 2, prefixed(pair.store, "pair/"), in_seconds(60), 0, 2});
  };
  std::thread peer([&] { pair.other = make(1); });
  pair.own = make(0);
  peer.join();
  return pair;
}

// The transports of this build that this machine can run.
std::vector<std::string> transports_here() {
  std::vector<std::string> names = transport_names();
  std::erase_if(names, [](std::string_view name) { return !why_unusable(name).empty(); });
  return names;
}

const WaitKind kKinds[] = {WaitKind::kSpin, WaitKind::kYield, WaitKind::kBlock};

}  // namespace

TEST_CASE("ranks spin if each has a core, and yield if they share cores") {
  CHECK(choose_wait(1, 1) == WaitKind::kSpin);
  CHECK(choose_wait(2, 2) == WaitKind::kSpin);
  CHECK(choose_wait(3, 2) == WaitKind::kYield);
  CHECK(choose_wait(64, 2) == WaitKind::kYield);
  CHECK(choose_wait(64, 2, WaitKind::kSpin) == WaitKind::kSpin);
  CHECK(choose_wait(1, 8, WaitKind::kBlock) == WaitKind::kBlock);
  CHECK(usable_cores() >= 1);
  CHECK(WaitPolicy(1'000'000).kind() != WaitKind::kSpin);
}

TEST_CASE("a wait ends at its deadline, not before and not much after") {
  for (const auto& transport : transports_here()) {
    for (const auto kind : kKinds) {
      DYNAMIC_SECTION(transport << ", " << to_string(kind)) {
        const auto pair = make_pair_of(transport, make_local_store());
        WaitPolicy policy(2, 2, settings_with(kind));
        const auto start = Clock::now();
        const auto deadline = start + 60ms;
        while (policy.pause(*pair.own, *pair.store, deadline)) pair.own->progress();
        CHECK(Clock::now() >= deadline);
        CHECK(Clock::now() < deadline + 20s);
      }
    }
  }
}

TEST_CASE("pauses are counted by kind, and for the statistics that are set") {
  for (const auto kind : kKinds) {
    DYNAMIC_SECTION(to_string(kind)) {
      const auto pair = make_pair_of("inproc", make_local_store());
      WaitPolicy policy(2, 2, settings_with(kind));
      WaitStatistics first;
      WaitStatistics second;
      for (WaitStatistics* counts : {&first, &second}) {
        policy.moved();
        policy.count_into(*counts);
        const auto deadline = in_seconds(60);
        while (counts->sleeps == 0) REQUIRE(policy.pause(*pair.own, *pair.store, deadline));
        CHECK(counts->waits == 1);
        if (kind != WaitKind::kSpin) CHECK(counts->spins == 0);
        if (kind == WaitKind::kBlock) CHECK(counts->yields == 0);
      }
    }
  }
}

TEST_CASE("the time of waits is counted") {
  for (const auto kind : kKinds) {
    DYNAMIC_SECTION(to_string(kind)) {
      const auto pair = make_pair_of("inproc", make_local_store());
      WaitPolicy policy(2, 2, settings_with(kind));
      WaitStatistics counts;
      policy.count_into(counts);
      const auto begin = Clock::now();
      while (policy.pause(*pair.own, *pair.store, begin + 3ms)) {
      }
      const auto whole = std::chrono::nanoseconds(Clock::now() - begin).count();
      CHECK(counts.waited_ns >= 1'000'000);
      CHECK(counts.waited_ns <= static_cast<std::uint64_t>(whole));
    }
  }
}

TEST_CASE("only a spinning policy spins, and it stops often enough to check the clock") {
  for (const auto kind : kKinds) {
    DYNAMIC_SECTION(to_string(kind)) {
      const auto pair = make_pair_of("inproc", make_local_store());
      WaitPolicy policy(2, 2, settings_with(kind));
      WaitStatistics counts;
      policy.count_into(counts);
      std::uint64_t spins = 0;
      while (policy.spin()) ++spins;
      CHECK((spins > 0) == (kind == WaitKind::kSpin));
      CHECK(spins < 1000);
      CHECK(counts.spins == spins);
      CHECK(counts.waits == (spins > 0 ? 1U : 0U));
      CHECK_FALSE(policy.pause(*pair.own, *pair.store, Clock::now()));  // whose deadline has passed
      CHECK(counts.waits == 1);
      policy.moved();
      CHECK(policy.spin() == (kind == WaitKind::kSpin));
    }
  }
}

namespace {

// The awaited peer runs on the core of the waiting rank.
class OnOneCore final : public decorators::ForwardingTransport<decorators::ForwardingChannel> {
 public:
  using ForwardingTransport::ForwardingTransport;
  bool shares_core_with_awaited_peer() override { return true; }
};

}  // namespace

TEST_CASE("a spinning rank on the core of its awaited peer yields at its first look at the clock") {
  auto pair = make_pair_of("inproc", make_local_store());
  OnOneCore transport(std::move(pair.own));
  WaitPolicy policy(2, 2, settings_with(WaitKind::kSpin));
  while (policy.spin()) {
  }
  WaitStatistics counts;
  policy.count_into(counts);
  for (const std::uint64_t wait : {1U, 2U}) {  // the second one does not spin at all
    for (int i = 0; i < 2; ++i) REQUIRE(policy.pause(transport, *pair.store, in_seconds(60)));
    CHECK(counts.yields == wait);
    CHECK(counts.spins == 0);
    policy.moved();
  }
}

namespace {

// Keeps the thread busy for `time`, as if other threads had taken the core.
void stay_away(Clock::duration time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

}  // namespace

TEST_CASE("a rank that often loses its core while waiting stops spinning for a while") {
  for (const auto kind : {WaitKind::kSpin, WaitKind::kYield}) {
    DYNAMIC_SECTION(to_string(kind)) {
      const auto pair = make_pair_of("inproc", make_local_store());
      auto settings = settings_with(kind);
      settings.spin = 1h;  // so that only a preemption makes it sleep
      WaitPolicy policy(2, 2, settings);
      WaitStatistics counts;
      policy.count_into(counts);
      const auto deadline = in_seconds(60);
      const auto pause = [&] {
        policy.wake();  // so that its sleep ends at once
        REQUIRE(policy.pause(*pair.own, *pair.store, deadline));
      };
      const auto look = [&] {
        for (int i = 0; i < 64; ++i) pause();  // a spinning rank checks the clock this seldom
      };
      look();
      CHECK(counts.sleeps == 0);
      for (int loss = 0; loss < 8; ++loss) {
        policy.moved();
        look();
        stay_away(2ms);
        look();
      }
      const auto pause_until_asleep = [&] {
        const auto sleeps = counts.sleeps;
        while (counts.sleeps == sleeps) pause();
      };
      policy.moved();
      pause_until_asleep();
      const auto yields = counts.yields;
      pause_until_asleep();
      CHECK(counts.yields == yields);

      stay_away(1100ms);  // longer than the longest backoff
      policy.moved();
      const auto sleeps = counts.sleeps;
      pause();
      CHECK(counts.sleeps == sleeps);
    }
  }
}

namespace {

// A transport without a descriptor to wait on, like libfabric's shm.
class WithoutDescriptor final
    : public decorators::ForwardingTransport<decorators::ForwardingChannel> {
 public:
  using ForwardingTransport::ForwardingTransport;
  int descriptor() const override { return -1; }
  bool arm() override { throw std::logic_error("armed, where there is nothing to poll"); }
};

}  // namespace

TEST_CASE("a long wait naps and checks again by itself if its transport cannot wake it") {
  for (const auto kind : kKinds) {
    DYNAMIC_SECTION(to_string(kind)) {
      auto pair = make_pair_of("inproc", make_local_store());
      WithoutDescriptor transport(std::move(pair.own));
      WaitPolicy policy(2, 2, settings_with(kind));
      WaitStatistics counts;
      policy.count_into(counts);
      const auto deadline = in_seconds(60);
      while (counts.sleeps == 0) REQUIRE(policy.pause(transport, *pair.store, deadline));
      const auto yields = counts.yields;
      const auto sleeps = counts.sleeps;
      const auto start = Clock::now();
      for (int nap = 0; nap < 20; ++nap) {
        do {
          REQUIRE(policy.pause(transport, *pair.store, deadline));
        } while (counts.sleeps == sleeps + static_cast<std::uint64_t>(nap));
      }
      CHECK(Clock::now() - start >= 20 * 50us);
      CHECK(counts.yields - yields <= (kind == WaitKind::kBlock ? 0U : 20U));
      CHECK(pair.store->post_failure("rank 7 has gone") == "rank 7 has gone");
      CHECK_THROWS_WITH(
          [&] {
            while (policy.pause(transport, *pair.store, deadline)) {
            }
          }(),
          ContainsSubstring("rank 7 has gone"));
    }
  }
}

TEST_CASE(
    "work between two spins is not taken for preemption, and shortens the time until the clock "
    "check") {
  const auto pair = make_pair_of("inproc", make_local_store());
  auto settings = settings_with(WaitKind::kSpin);
  settings.spin = 1h;  // so that the rank does not sleep
  WaitPolicy policy(2, 2, settings);
  for (int wait = 0; wait < 12; ++wait) {
    policy.moved();
    std::uint64_t spins = 0;
    for (; policy.spin(); ++spins) stay_away(60us);
    CHECK(spins >= 1);
    if (wait > 0) CHECK(spins == 1);
    for (int round = 0; round < 80; ++round) {  // longer than a rank may spin
      policy.wake();
      REQUIRE(policy.pause(*pair.own, *pair.store, in_seconds(60)));
      stay_away(60us);
    }
  }
}

TEST_CASE("a posted failure ends every wait with the same message") {
  for (const StoreRow& row : store_table()) {
    for (const auto kind : kKinds) {
      DYNAMIC_SECTION(row.name << ", " << to_string(kind)) {
        const auto job = row.make();
        const auto pair = make_pair_of("inproc", job->open());
        const auto elsewhere = job->open();
        WaitPolicy policy(2, 2, settings_with(kind));
        std::optional<ErrorCode> code;
        std::string text;
        std::thread poster([&] { elsewhere->post_failure("rank 7: out of paper"); });
        try {
          const auto deadline = in_seconds(30);
          while (policy.pause(*pair.own, *pair.store, deadline)) pair.own->progress();
        } catch (const Error& error) {
          code = error.code();
          text = error.what();
        }
        poster.join();
        CHECK(code == ErrorCode::kAborted);
        CHECK(text == "rank 7: out of paper");
      }
    }
  }
}

TEST_CASE("a segment ends every wait") {
  for (const auto& transport : transports_here()) {
    for (const auto kind : kKinds) {
      DYNAMIC_SECTION(transport << ", " << to_string(kind)) {
        const auto pair = make_pair_of(transport, make_local_store());
        std::thread sender([&] {
          const std::byte byte{42};
          while (!pair.other->channel(0).send({&byte, 1})) pair.other->progress();
          while (!pair.other->channel(0).is_drained()) pair.other->progress();
        });
        WaitPolicy policy(2, 2, settings_with(kind));
        std::byte got{0};
        const auto deadline = in_seconds(30);
        while (!pair.own->channel(1).receive({&got, 1}) &&
               policy.pause(*pair.own, *pair.store, deadline)) {
          pair.own->progress();
        }
        sender.join();
        CHECK(got == std::byte{42});
      }
    }
  }
}

TEST_CASE("auto takes the transport with the shortest reach") {
  const auto pair = make_pair_of("auto", make_local_store());
  CHECK(pair.own->name() == transport_names().front());
  CHECK(pair.own->name() == "inproc");
  CHECK(pair.other->name() == "inproc");
}

TEST_CASE("every rank gets the same error when ranks ask for different transports") {
  const auto store = make_local_store();
  const auto refusal = [&store](int rank, std::string_view transport) -> std::string {
    try {
      make_transport(transport, {rank, 2, store, in_seconds(20), 0, 2});
    } catch (const Error& error) {
      return error.code() == ErrorCode::kMismatch ? error.what() : "another code";
    }
    return "nothing was thrown";
  };
  std::string other;
  std::thread peer([&] { other = refusal(1, "inproc"); });
  const std::string own = refusal(0, "tcp");
  peer.join();
  CHECK(own == "rank 0 asked for transport tcp, rank 1 for inproc: ask for the same on every rank");
  CHECK(other == own);
}

TEST_CASE("the error for an unknown transport lists the available ones") {
  try {
    make_transport("carrier pigeon", {0, 1, make_local_store(), in_seconds(1), 0, 1});
    FAIL("nothing was thrown");
  } catch (const std::invalid_argument& error) {
    CHECK_THAT(error.what(), ContainsSubstring("'carrier pigeon'") && ContainsSubstring("inproc") &&
                                 ContainsSubstring("tcp"));
  }
}
