// Turns of arms: which arm may train next.
#include "train/experiment/turns.h"

#include <poll.h>

#include "test/support/catch.h"

namespace {

using namespace kolo::train;

// How many ranks of the arm may go on. Takes their bytes.
int turns_of(const Turns& turns, std::size_t arm) {
  int count = 0;
  pollfd ready{turns.descriptor(arm), POLLIN, 0};
  while (poll(&ready, 1, 0) == 1) {
    wait_for_turn(ready.fd);
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("the first arm starts when all arms wait, with a turn for each of its ranks") {
  Turns turns({2, 3});
  turns.waits(0);
  CHECK(turns_of(turns, 0) == 0);
  turns.waits(1);
  CHECK(turns_of(turns, 0) == 2);
  CHECK(turns_of(turns, 1) == 0);
}

TEST_CASE("arms take turns in their order") {
  Turns turns({1, 1, 1});
  for (const std::size_t arm : {2, 1, 0}) turns.waits(arm);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const std::size_t arm : {0, 1, 2}) {
      for (const std::size_t other : {0, 1, 2})
        CHECK(turns_of(turns, other) == (other == arm ? 1 : 0));
      turns.waits(arm);
    }
  }
}

TEST_CASE("an arm that has ended gets no turn, and gives up the one that it has") {
  Turns turns({1, 1, 1});
  for (const std::size_t arm : {0, 1, 2}) turns.waits(arm);
  CHECK(turns_of(turns, 0) == 1);
  turns.ended(1);  // while it waits
  CHECK(turns_of(turns, 2) == 0);
  turns.ended(0);  // while it trains
  CHECK(turns_of(turns, 2) == 1);
  turns.waits(2);
  CHECK(turns_of(turns, 2) == 1);
  turns.ended(2);
  for (const std::size_t arm : {0, 1, 2}) CHECK(turns_of(turns, arm) == 0);
}

TEST_CASE("an arm that ends before it waits does not hold up the others") {
  Turns turns({1, 1});
  turns.waits(0);
  turns.ended(1);
  CHECK(turns_of(turns, 0) == 1);
}
