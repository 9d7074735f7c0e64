// Patience with processes that do not answer a goodbye.
//
// A rank that ends waits a bounded time until its peers have its data, in every communicator. A
// process that has used up this time once is not waited for again in the next ones, for
// kForgetAfter. (Threads of this process are always waited for.) So the end of a program takes one
// such wait, whatever the number of communicators. Kept per process, as the transports of several
// communicators know nothing of each other. Safe from any thread.
#pragma once

#include <chrono>
#include <string>

#include "transports/transport.h"

namespace kolo::inline v0::ofi {

inline constexpr std::chrono::seconds kForgetAfter{10};

// `process`: posix::process_identity() of the peer; empty: none in particular.
void lose_patience_with(const std::string& process, Clock::time_point now);
bool has_patience_with(const std::string& process, Clock::time_point now);

}  // namespace kolo::inline v0::ofi
