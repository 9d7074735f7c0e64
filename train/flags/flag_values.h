// Rules for the values of flags. They are declared with the flag, and their messages name it.
//
// A rule checks the given text only. So it can reject 0 for a flag whose field uses 0 for "not
// given".
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace kolo::train {

// Returns "" if the text is valid; otherwise what was expected, and the given text. The type fits
// CLI11's Option::check; CLI11 puts the flag's name before the message.
using ValueRule = std::function<std::string(const std::string& text)>;

// A whole number in [least, most].
ValueRule whole_number(std::int64_t least,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());

enum class Least { included, excluded };
// A finite number of at least `least` (or above it), and below `limit`.
ValueRule real_number(double least, Least is,
                      double limit = std::numeric_limits<double>::infinity());

// Any text except the empty one, for example from an unset shell variable. `expected`: "a folder".
ValueRule nonempty_text(std::string expected);

// One of `names`. `what` describes them in messages: "model".
ValueRule one_of(std::string what, std::vector<std::string> names);

// A specification for open_dataset; checks only its kind.
ValueRule known_dataset();

}  // namespace kolo::train
