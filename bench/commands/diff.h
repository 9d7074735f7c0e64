// kolo-bench diff: compares two files of JSON lines row by row, and tells slower rows from noise.
#pragma once

#include "bench/cli/arguments.h"

namespace kolo::bench {

// Prints a table of the rows that both files have. Rows match if library (or peer, as in
// --against), transport, collective, algorithm, ranks, bytes, type, op, form, memory,
// reproducibility, in_place, servers, segment_bytes, window, progress and network are equal. If a
// library now chooses a different algorithm, its rows are compared as well. The last of several
// rows for one point counts.
//
// A row is slower if every new pass took longer (its median) than every old pass, and the two
// medians differ by at least --least percent. Faster is the reverse. Otherwise the difference is
// noise. If one of the files has fewer than 3 passes, single iterations count: the new median is
// above the old 90th percentile, and the old median below the new 10th percentile. Rows are not
// compared if they were measured at different distances of the cores, or while the cores moved or
// were disturbed.
//
// Returns 1 if a row of kolo is slower, or is wrong and was right before. Returns 4 if the files
// have no row in common, or if no row, or none of kolo's, could be compared. Otherwise returns 0.
// Rows of peers and floors are printed and do not count. std::invalid_argument for files that
// cannot be read or hold no rows.
int run_diff(const Arguments& arguments);

}  // namespace kolo::bench
