// Deadlines taken from it are never earlier than asked for.
#include "transports/posix/rough_time.h"

#include <chrono>

#include "test/support/catch.h"

namespace kolo::test {

TEST_CASE("the rough time is never behind the clock, and at most a few ticks before it") {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 100'000; ++i) {
    const auto before = Clock::now();
    const auto rough = posix::rough_time();
    REQUIRE(rough >= before);
    REQUIRE(rough <= Clock::now() + std::chrono::milliseconds(25));
  }
}

}  // namespace kolo::test
