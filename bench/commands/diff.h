// kolo-bench diff: two files of JSON lines, row by row: what has become slower, and what is noise.
#pragma once

#include "bench/cli/arguments.h"

namespace kolo::bench {

// Prints a table of what both files have, matched by library (or peer, as --against had it),
// transport, collective, algorithm, ranks, bytes, type, op, and what else was asked for: form,
// memory, reproducibility, in place or not, servers, segment_bytes, a window, whose progress, a
// network; where only the algorithm differs, because the library now chooses another, rows are
// compared as well. Of several rows for one point the last counts.
//
// A row is slower where every pass of now took longer (its median) than every pass of before, and
// the two medians are apart by --least percent or more; faster the other way round; else the
// difference is noise. With fewer than 3 passes in one of the files: where the median of now lies
// above the 90th percentile of before, and the median of before below the 10th percentile of now.
// Rows that were measured at another distance of the cores, or while that changed, are not
// compared.
//
// Returns 1 where a row of kolo's is slower, or has wrong results that were right before; 4 where
// no row could be compared, or none of kolo's of those in both files; else 0. What peers and floors
// did is told, and does not count. std::invalid_argument for files that
// cannot be read, hold no rows, or have none in common.
int run_diff(const Arguments& arguments);

}  // namespace kolo::bench
