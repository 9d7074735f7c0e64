// The rank that usually begins its collectives last, from merged timelines.
#pragma once

#include <map>
#include <string>

namespace kolo::bench {

// Begin of each rank's collectives in one communicator, in microseconds: [operation][rank].
using OperationBegins = std::map<std::string, std::map<int, double>>;

// "rank 2 began last in 10 of 10 operations, by 20.9 ms": the rank that was last most often, and
// the median of its distance to the rank before it. Counts the operations that have as many ranks
// as any has. Empty with fewer than two ranks.
std::string late_rank_text(const OperationBegins& begins);

}  // namespace kolo::bench
