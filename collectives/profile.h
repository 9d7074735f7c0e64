// What steps cost: sums for every kind of step, and the steps themselves on a timeline.
//
// Off by default, and then the executor asks one pointer for every advance(), nothing for a
// segment. On, a step costs two more readings of the clock (some 50 ns), so that the shares are
// right and the whole is a little slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule.h"

namespace kolo {

// All steps of one kind so far, each one segment long.
struct StepProfile {
  std::string_view kind;    // to_string(StepKind), or "drain": the wait for the last sends
  std::uint64_t steps = 0;  // segments
  std::uint64_t bytes = 0;  // of those segments
  double worked_us = 0;     // in the call that did it: copying, reducing, the transport's part
  double waited_us = 0;     // between the first try, which found no segment or no credit, and it
};

}  // namespace kolo
