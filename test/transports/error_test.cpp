// The rank prefix of an error message.
#include "transports/error.h"

#include "test/support/catch.h"

using namespace kolo;

TEST_CASE("an error message has exactly one rank prefix") {
  CHECK(by_rank(0, "no memory") == "rank 0: no memory");
  CHECK(by_rank(0, "rank 0: no memory") == "rank 0: no memory");
  CHECK(by_rank(0, "rank 1: waited 2 s") == "rank 1: waited 2 s");
  CHECK(by_rank(0, "rank 0 has no endpoint") == "rank 0 has no endpoint");
  CHECK(by_rank(0, "rank 0 (node1): waited") == "rank 0 (node1): waited");
  CHECK(by_rank(1, "rank 0 has no endpoint") == "rank 1: rank 0 has no endpoint");
  CHECK(by_rank(1, "rank 12 is gone") == "rank 1: rank 12 is gone");
  CHECK(by_rank(1, "rank : odd") == "rank 1: rank : odd");
  CHECK(by_rank(1, "rank") == "rank 1: rank");
}
