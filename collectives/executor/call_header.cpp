#include "collectives/executor/call_header.h"

#include <fmt/format.h>

#include "collectives/algorithms/algorithm_table.h"
#include "transports/transport.h"

namespace kolo::inline v0 {
namespace {

// Hash of the server plan or of the counts.
unsigned plan_of(const CallHeader& header) {
  return header.is_user() ? header.root : static_cast<unsigned>(header.count_and_plan & 0xffff);
}

// Details that describe() omits, which matter only in a mismatch.
std::string detail(const CallHeader& mine, const CallHeader& theirs) {
  std::string text;
  if (mine.algorithm != theirs.algorithm) {
    text += fmt::format(" by {}", algorithm_name(mine.algorithm));
  }
  if (mine.is_on_stream() != theirs.is_on_stream()) {
    text += mine.is_on_stream() ? " on a stream" : " on no stream";
  } else if (mine.is_captured() != theirs.is_captured()) {
    text += mine.is_captured() ? " into a graph" : " into no graph";
  } else if (mine.segment_units != theirs.segment_units) {
    text += fmt::format(" in segments of {} bytes", mine.segment_bytes());
  }
  if (plan_of(mine) != plan_of(theirs)) {
    text += fmt::format(" with {} {:04x}", has_servers(mine.collective) ? "server plan" : "counts",
                        plan_of(mine));
  }
  return text;
}

}  // namespace

std::string describe(const CallHeader& header) {
  std::string text = fmt::format("{} #{}", to_string(header.collective), header.sequence);
  if (header.collective == Collective::kBarrier) return text;
  if (header.is_user()) {
    text += fmt::format(" of {} elements of {} bytes by user function {}", header.count(),
                        header.bytes_of_element(), header.tag());
  } else {
    text += fmt::format(" of {} {}", header.count(), to_string(header.type));
    if (is_reduction(header.collective)) text += fmt::format(" {}", to_string(header.op));
  }
  if (header.collective == Collective::kMessage) text += fmt::format(" from {}", header.root);
  if (has_root(header.collective)) {
    const bool gives =
        header.collective == Collective::kBroadcast || header.collective == Collective::kScatter;
    text += fmt::format(" {} root {}", gives ? "from" : "to", header.root);
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

}  // namespace kolo::inline v0
