// What ranks leave in the store when something goes wrong, as text: the job's first failure, and
// for whom a rank waits. Whoever reads it takes it from others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transports/error.h"

namespace kolo {

// The store keeps one text; the code travels at its end: "rank 1 called ... [mismatch]".
std::string to_text(const Error& failure);

// The same again; the peer is the rank that the text begins with, or kNoPeer. Any text is a
// failure: without a code it is one that the store's server has posted, which sees ranks die.
Error failure_from(std::string_view text);

// Of "3 1 2" the numbers that are ranks of a job of `size`.
std::vector<int> ranks_from(std::string_view text, int size);

}  // namespace kolo
