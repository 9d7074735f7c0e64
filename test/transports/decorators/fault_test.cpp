// Faults occur where, when and as often as the plan says.
#include "transports/decorators/fault.h"

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/decorators/pair.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;

namespace {

using Bytes = std::vector<std::byte>;

Ends faulty(const std::string& plan) {
  return make_pair([&plan](std::unique_ptr<Transport> inner) {
    return make_faulty(std::move(inner), parse_faults(plan));
  });
}

// How often the call returns "not now" before it succeeds.
template <typename Call>
int refusals(Call call) {
  int count = 0;
  while (!call()) {
    ++count;
    REQUIRE(count < 1000);
  }
  return count;
}

std::vector<int> storm_of(const std::string& plan) {
  const Ends ends = faulty(plan);
  std::vector<int> counts;
  Bytes data(8);
  for (int i = 0; i < 40; ++i) {
    counts.push_back(refusals([&] { return ends[0]->channel(1).send(data); }));
    counts.push_back(refusals([&] { return ends[1]->channel(0).receive(data); }));
  }
  return counts;
}

}  // namespace

TEST_CASE("a storm refuses calls as its seed determines, and never more often than allowed") {
  const auto counts = storm_of("storm@times=3,seed=7");
  CHECK(counts == storm_of("storm@times=3,seed=7"));
  CHECK(counts != storm_of("storm@times=3,seed=8"));
  CHECK(*std::max_element(counts.begin(), counts.end()) == 3);
  CHECK(*std::min_element(counts.begin(), counts.end()) == 0);
}

TEST_CASE("a storm in one direction does not affect the other") {
  const auto counts = storm_of("storm@times=3,on=in");
  int out = 0;
  int in = 0;
  for (std::size_t i = 0; i < counts.size(); i += 2) {
    out += counts[i];
    in += counts[i + 1];
  }
  CHECK(out == 0);
  CHECK(in > 0);
}

TEST_CASE("a rank refused by a storm is kept awake once") {
  const Ends ends = faulty("storm@times=1000000,seed=1");
  Bytes data(8);
  while (!ends[0]->arm()) ends[0]->progress();  // handles old events
  ends[0]->disarm();
  REQUIRE_FALSE(ends[0]->channel(1).send(data));
  CHECK_FALSE(ends[0]->arm());
  CHECK(ends[0]->arm());
  ends[0]->disarm();
}

TEST_CASE("a peer is lost at the planned segment, and only for the planned rank") {
  const Ends ends = faulty("lose@rank=0,peer=1,segment=3");
  Bytes data(8);
  CHECK(ends[0]->channel(1).send(data));
  CHECK(ends[1]->channel(0).send(data));
  CHECK(ends[0]->channel(1).receive(data));
  for (int i = 0; i < 2; ++i) {
    try {
      ends[0]->channel(1).send(data);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kPeerLost);
      CHECK(error.peer() == 1);
      CHECK_THAT(error.what(),
                 ContainsSubstring("rank 0: cannot send to rank 1: lost at segment 3"));
    }
  }
  CHECK(ends[1]->channel(0).receive(data));
}

TEST_CASE("corrupt changes one bit of one segment") {
  for (const bool is_slot : {false, true}) {
    const Ends ends = faulty("corrupt@rank=0,segment=2");
    for (int i = 1; i <= 3; ++i) {
      const Bytes data(9, std::byte{0x40});
      if (is_slot) {
        std::byte* slot = ends[0]->channel(1).reserve(data.size());
        REQUIRE(slot != nullptr);
        std::copy(data.begin(), data.end(), slot);
        ends[0]->channel(1).commit();
      } else {
        REQUIRE(ends[0]->channel(1).send(data));
      }
      Bytes got(9);
      REQUIRE(ends[1]->channel(0).receive(got));
      Bytes expected = data;
      if (i == 2) expected[4] ^= std::byte{1};
      CHECK(got == expected);
    }
  }
}

TEST_CASE("a stalled rank stops for the planned time") {
  const Ends ends = faulty("stall@rank=0,segment=2,for=20ms");
  Bytes data(8);
  CHECK(ends[0]->channel(1).send(data));
  const auto before = Clock::now();
  CHECK(ends[0]->channel(1).send(data));
  CHECK(Clock::now() - before >= std::chrono::milliseconds(20));
  CHECK(ends[1]->channel(0).receive(data));
}

TEST_CASE("a rank dies at its planned segment as if it were killed") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const Ends ends = faulty("die@rank=1,segment=3");
    Bytes data(8);
    for (int i = 0; i < 2; ++i) {
      ends[0]->channel(1).send(data);
      ends[1]->channel(0).receive(data);
    }
    ends[0]->channel(1).send(data);
    ends[1]->channel(0).receive(data);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

TEST_CASE("a plan with a missing rank, or with a rank as its own peer, is refused") {
  CHECK_THROWS_WITH(faulty("die@rank=2"), ContainsSubstring("there is no rank 2: this job has 2"));
  CHECK_THROWS_WITH(faulty("lose@rank=1,peer=1,segment=5"),
                    ContainsSubstring("rank 1 cannot be its own peer"));
}
