// Connections between ranks that were not made, and why: a table for the message of a failure.
//
//   missing connections:
//     rank 0: no tcp connection to rank 2 was made, at 10.9.0.3:4000 (no answer yet)
//     rank 2: no tcp connection to rank 1 was made, at 10.9.0.2:4000 (Connection refused)
//     and 7 more
//
// A rank that waits long publishes its rows together with its wait edges (wait_graph.h). The rank
// that reports a failure collects the rows of all ranks, so all ranks show the same table. It
// leaves out pairs that have not tried to connect.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transports/error.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// The rows of one rank. The first line is their number; then the first rows follow, one a line.
// `channels`: by rank, null for the rank itself. Empty: no connection is missing.
std::string missing_connections_of(std::span<Channel* const> channels);

// The table of all ranks' rows. `rows`: by rank; any text is accepted. The table begins with a line
// break, and is short, as a file store keeps 4 KiB of a failure. Empty: no connection is missing.
std::string missing_connections_table(std::span<const std::string> rows);

// Collects the rows of all ranks for the text of `failure`, which this `rank` reports. `channels`
// are this rank's. Returns the table, or "" if it would add nothing: no connection is missing, the
// text of `failure` already has the only row, or the failure has another cause than a connection.
//
// Blocks while it asks the store: until wait_graph_deadline() at most. A refused connection fails
// within a second or two, before other ranks have published their rows. Then this function waits
// for these rows, for a second at most.
std::string find_missing_connections(Store& store, int rank, std::span<Channel* const> channels,
                                     const Error& failure);

}  // namespace kolo::inline v0
