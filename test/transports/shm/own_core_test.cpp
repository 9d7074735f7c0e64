// A rank learns that it shares its core with the peer that it waits for. One thread runs both
// ranks.
#include <sched.h>

#include <memory>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/posix/host/cores.h"

using namespace kolo;
using namespace kolo::test;

namespace {

void bind_to(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  REQUIRE(::sched_setaffinity(0, sizeof set, &set) == 0);
}

// Two ranks with a region each, and their thread on the first of its cores.
struct RanksOnOneCore {
  RanksOnOneCore() : cores(posix::affinity_cores()), ranks(make_ranks(2)) {
    bind_to({cores[0]});
    std::uint64_t value = 0;
    const auto into = std::as_writable_bytes(std::span(&value, 1));
    for (const int from : {0, 1}) {
      send(*ranks[static_cast<std::size_t>(from)], 1 - from, 1);
      Transport& to = *ranks[static_cast<std::size_t>(1 - from)];
      const auto arrives = [&] {
        for (const auto& rank : ranks) rank->progress();
        return to.channel(from).receive(into);
      };
      wait_until(to, arrives, "the first segment");
    }
  }
  ~RanksOnOneCore() { bind_to(cores); }
  RanksOnOneCore(const RanksOnOneCore&) = delete;
  RanksOnOneCore& operator=(const RanksOnOneCore&) = delete;

  Transport& low() { return *ranks[0]; }
  Transport& high() { return *ranks[1]; }

  std::vector<int> cores;
  std::vector<std::unique_ptr<Transport>> ranks;
};

}  // namespace

TEST_CASE("a rank that waits for a peer on its own core is told so, until the peer's data come") {
  RanksOnOneCore pair;
  CHECK_FALSE(pair.low().shares_core_with_awaited_peer());  // it waits for nothing
  REQUIRE(pair.high().channel(0).view(8) == nullptr);
  CHECK(pair.high().shares_core_with_awaited_peer());
  REQUIRE(pair.low().channel(1).view(8) == nullptr);
  CHECK(pair.low().shares_core_with_awaited_peer());
  send(pair.high(), 0, 7);
  CHECK(receive(pair.low(), 1) == 7);
  CHECK_FALSE(pair.low().shares_core_with_awaited_peer());
}

TEST_CASE("a rank that waits on a core of its own is not told to share it") {
  RanksOnOneCore pair;
  if (pair.cores.size() < 2) return;
  CHECK_FALSE(pair.low().shares_core_with_awaited_peer());
  bind_to({pair.cores[1]});
  REQUIRE(pair.high().channel(0).view(8) == nullptr);
  CHECK_FALSE(pair.high().shares_core_with_awaited_peer());
}
