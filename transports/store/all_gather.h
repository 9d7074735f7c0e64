// All-gather of short texts through the store, for bootstrapping.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transports/rendezvous.h"

namespace kolo::inline v0 {

// Publishes `value` under `key` for this rank and waits for the values of all others. Use each key
// once. Error kDeadline names the missing ranks: "rank 1: waited 30.0 s for ranks 2, 3 of 4 to
// <purpose>: ...". After the deadline it queries at most 1024 ranks.
std::vector<std::string> exchange(Store& store, int rank, int size, std::string_view key,
                                  std::string_view value, Deadline deadline,
                                  std::string_view purpose);

// "rank 2", "ranks 2, 3 and 5", "ranks 0, 1, 2, 3 and 12 more".
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace kolo::inline v0
