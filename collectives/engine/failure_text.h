// What ranks leave in the store when something goes wrong, as text: the job's first failure, and
// for whom a rank waits. Whoever reads it takes it from others.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/error.h"

namespace kolo {

// The store keeps one text; code and peer travel at its end: "rank 1 called ... [mismatch, rank
// 1]".
std::string to_text(const Error& failure);

// The same again. Any text is a failure: without a code it is one that the store's server has
// posted, which sees ranks die, and the peer is the rank that it begins with, or kNoPeer.
Error failure_from(std::string_view text);

// For whom a rank waits: to receive a message from it, or for anything else.
struct WaitEdge {
  int rank = 0;
  bool is_to_send = false;
};

// "3 1< 2": for ranks 3 and 2, and for a message from rank 1.
std::string to_text(std::span<const WaitEdge> awaited);

// The same again, of those that are ranks of a job of `size`.
std::vector<WaitEdge> wait_edges_from(std::string_view text, int size);

}  // namespace kolo
