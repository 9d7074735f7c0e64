// The all-gather of bootstrapping: every rank gives a short text, every rank gets all of them,
// through the store.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transports/rendezvous.h"

namespace kolo {

// Publishes `value` under `key` for this rank and waits for those of all others. Error kDeadline
// names the ranks that did not come: "rank 1: waited 30.0 s for ranks 2, 3 of 4 to <purpose>: ...";
// of very many not all are looked for. Each key serves once.
std::vector<std::string> exchange(Store& store, int rank, int size, std::string_view key,
                                  std::string_view value, Deadline deadline,
                                  std::string_view purpose);

// "rank 2", "ranks 2, 3 and 5", "ranks 0, 1, 2, 3 and 12 more".
std::string name_ranks(const std::vector<int>& ranks);

// What a store says of a rank that two processes are: "rank 0 is taken twice, by node1, pid 7 and
// by node1, pid 8: ...".
std::string taken_twice(int rank, std::string_view holder, std::string_view other);

}  // namespace kolo
