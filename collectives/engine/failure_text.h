// Text formats for the store's failure and wait entries. The texts come from other ranks, so
// parsing accepts any input.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/error.h"

namespace kolo::inline v0 {

// Appends code and peer to the message: "rank 1 called ... [mismatch, rank 1]".
std::string to_text(const Error& failure);

// The inverse. A text without a code comes from the store's server, which sees ranks die. Its peer
// is then the rank at the start of the text, or kNoPeer.
Error failure_from(std::string_view text);

// A rank that another waits for.
struct WaitEdge {
  int rank = 0;
  bool is_to_send = false;
};

// "3 1< 2": waits for ranks 3 and 2, and to receive a message from rank 1.
std::string to_text(std::span<const WaitEdge> awaited);

// Parses the first line of `text`. Drops ranks that a job of `size` ranks does not have.
std::vector<WaitEdge> wait_edges_from(std::string_view text, int size);

}  // namespace kolo::inline v0
