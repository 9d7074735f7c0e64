// Connections between ranks that were not made, and why: a table for the message of a failure.
//
//   missing connections:
//     rank 0: no tcp connection to rank 2 was made, at 10.9.0.3:4000 (no answer yet)
//     rank 2: no tcp connection to rank 1 was made, at 10.9.0.2:4000 (Connection refused)
//     and 7 more
//
// A rank that waits long publishes its own rows beside its wait edges (wait_graph.h). The rank that
// reports a failure collects the rows of all ranks, so all ranks show the same table. Pairs that
// have not tried to connect are not in it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transports/error.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// The rows of one rank: their number, and the first of them, a line each. `channels`: by rank, null
// for the rank itself. Empty: no connection is missing.
std::string missing_connections_of(std::span<Channel* const> channels);

// The table of all ranks' rows, given by rank and of any content. It starts with a line break and
// stays short, as a file store keeps 4 KiB of a failure. Empty: no connection is missing.
std::string missing_connections_table(std::span<const std::string> rows);

// That table for `failure`, which `rank` reports. Empty too if the text of `failure` has all of it,
// or if the failure is of another kind. Waits for the store as long as wait_graph_deadline() says,
// and after a refused connection, which comes early, up to a second for the other ranks to publish.
std::string find_missing_connections(Store& store, int rank, std::span<Channel* const> channels,
                                     const Error& failure);

}  // namespace kolo::inline v0
