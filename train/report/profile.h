// Table of --profile: the time of each layer in an iteration, the longest first.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "train/report/table.h"

namespace kolo::train {

// The layers of an arm on rank 0, and the other parts of its iteration; means over seeds. Rows
// beyond the `most` longest are summed in a last row.
Table profile_table(const Report& report, const std::string& arm,
                    std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace kolo::train
