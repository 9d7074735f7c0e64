#include "collectives/call_header.h"

#include <fmt/format.h>

#include "collectives/algorithm_table.h"
#include "transports/transport.h"

namespace kolo {
namespace {

bool is_reduction(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kPushPull;
}

// What describe() does not say, as it matters only where it differs.
std::string detail(const CallHeader& mine, const CallHeader& theirs) {
  std::string text;
  if (mine.algorithm != theirs.algorithm) {
    text += fmt::format(" by {}", algorithm_name(mine.algorithm));
  }
  if (mine.segment_units != theirs.segment_units) {
    text += fmt::format(" in segments of {} bytes", mine.segment_units * kSegmentAlignment);
  }
  if ((mine.count_and_plan & 0xffff) != (theirs.count_and_plan & 0xffff)) {
    text += fmt::format(" with server plan {:04x}", mine.count_and_plan & 0xffff);
  }
  return text;
}

}  // namespace

std::string describe(const CallHeader& header) {
  std::string text = fmt::format("{} #{}", to_string(header.collective), header.sequence);
  if (header.collective == Collective::kBarrier) return text;
  text += fmt::format(" of {} {}", header.count(), to_string(header.type));
  if (is_reduction(header.collective)) text += fmt::format(" {}", to_string(header.op));
  if (header.collective == Collective::kBroadcast) {
    text += fmt::format(" from root {}", header.root);
  }
  return text;
}

std::string describe_mismatch(int one, const CallHeader& ones, int other,
                              const CallHeader& others) {
  std::string one_said = describe(ones);
  std::string other_said = describe(others);
  if (one_said == other_said) {
    one_said += detail(ones, others);
    other_said += detail(others, ones);
  }
  return fmt::format(
      "rank {} called {}, rank {} called {}; every rank must issue the same operations in the same "
      "order",
      one, one_said, other, other_said);
}

}  // namespace kolo
