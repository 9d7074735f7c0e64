// Clauses of the Store contract (transports/rendezvous.h), for a store of a program's own.
//
//   for (const auto& failed : kolo::conformance::failed_store_clauses([&] { return my_store(); }))
//     std::puts(failed.c_str());
//
// A store over KeyValueFunctions (transports/bootstrap.h) is proved in the same way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../rendezvous.h"

namespace kolo::inline v0::conformance {

// Runs every clause over a job of its own, and returns one line for each that failed: its name and
// what was wrong. `open` makes the store of one more rank of the job; after `reset` (empty: not
// needed) the next call belongs to a new, empty job. A clause takes less than a second, or 10 s if
// a wait of the store hangs.
std::vector<std::string> failed_store_clauses(const std::function<std::shared_ptr<Store>()>& open,
                                              const std::function<void()>& reset = {});

}  // namespace kolo::inline v0::conformance
