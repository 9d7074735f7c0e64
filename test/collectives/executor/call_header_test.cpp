// Text of a peer's call header, also when its fields are invalid.
#include "collectives/executor/call_header.h"

#include <string>

#include "test/support/catch.h"

using namespace kolo;

TEST_CASE("a mismatch is described even if the other header is invalid") {
  CallHeader mine;
  mine.collective = Collective::kBarrier;
  CallHeader theirs = mine;
  theirs.op = ReduceOp::kUser;  // an op on elements of zero bytes
  theirs.segment_units = 7;
  CHECK(theirs.segment_bytes() == 7 * kSegmentAlignment);
  const std::string text = describe_mismatch(1, theirs, 0, mine);
  CHECK(text.find("rank 1 called barrier #0 in segments of") != std::string::npos);
  theirs.collective = static_cast<Collective>(200);
  theirs.type = static_cast<ElementType>(201);
  theirs.op = static_cast<ReduceOp>(202);
  CHECK_FALSE(describe_mismatch(1, theirs, 0, mine).empty());
}
