// Wait graph of the ranks: each rank that waits long writes the ranks that it waits for to the
// store.
//
// On a timeout, a rank follows the chain of waiting ranks and reports the one at its end. That rank
// has published no wait: it is dead, hangs, or computes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "collectives/engine/failure_text.h"
#include "transports/rendezvous.h"

namespace kolo::inline v0 {

// A rank publishes a wait that is longer than this.
inline constexpr std::chrono::seconds kPublishWaitsAfter{1};

// Publishes the ranks that `rank` waits for now; empty: none. Adds the connections that `channels`
// could not make (missing_connections.h). Does not wait for the store.
void publish_wait_edges(Store& store, int rank, std::span<const WaitEdge> awaited,
                        std::span<Channel* const> channels = {});

// The text that `peer` has published: a line of wait edges, then the rows of its missing
// connections.
std::shared_ptr<const Store::Answer> ask_for_wait_edges(Store& store, int peer);

// Waits for this text; nullopt if the store does not answer in time.
std::optional<std::string> fetch_wait_edges(Store& store, int peer, Deadline until);

// Time limit for the store's answers after a timeout. A store that is known to be silent gets none.
Deadline wait_graph_deadline(Store& store);

// The rank at the end of `peer`'s chain of waits, for a wait of `rank` (of `size`) for `peer`: the
// nearest rank that has published no wait. `peer` itself if all ranks wait in a cycle.
int find_stalled_rank(Store& store, int rank, int size, int peer, Deadline until);

// Two ranks that wait for each other, on the chains of waits from `peer`, for which `rank` waits;
// nullopt: none. If both called the same operation, the path between them is interrupted.
std::optional<std::pair<int, int>> find_facing_pair(Store& store, int rank, int size, int peer,
                                                    Deadline until);

// "rank 1 waits too, at the end of the chain for rank 3; ", or empty if both are the same rank.
std::string wait_chain_text(int awaited, int last);

}  // namespace kolo::inline v0
