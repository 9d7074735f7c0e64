// Who waits for whom, as ranks that have waited for long say it in the store of their communicator.
//
// Whose deadline passes names the rank that holds up all others: one that is not there, and says
// nothing, not one that waits for it as well.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "collectives/engine/failure_text.h"
#include "transports/rendezvous.h"

namespace kolo {

// A wait this long is worth telling the others for whom.
inline constexpr std::chrono::seconds kPublishWaitsAfter{1};

// For whom `rank` waits from now on; nothing: for nobody. Without waiting for the store.
void publish_wait_edges(Store& store, int rank, std::span<const WaitEdge> awaited);

// What `peer` has said; nothing where the store does not answer by then.
std::optional<std::string> fetch_wait_edges(Store& store, int peer, Deadline until);

// How long the store may take to say who waits for whom, once a deadline has passed: one that is
// known to be silent gets no time.
Deadline wait_graph_deadline(Store& store);

// Whom `peer`, for which `rank` of `size` waits, waits for in the end: the rank that says nothing,
// the nearest if there are several. `peer` itself where that is nobody else, or where all wait in a
// circle.
int find_stalled_rank(Store& store, int rank, int size, int peer, Deadline until);

// "rank 1 waits in its turn, in the end for rank 3; ", and nothing where they are the same.
std::string wait_chain_text(int awaited, int last);

}  // namespace kolo
