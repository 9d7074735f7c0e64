// What the value of a flag may be: rules that are stated where the flag is, and messages that name
// it.
//
// A rule sees the words that were given and nothing else, so that 0 can be refused in a flag whose
// field says "not given" by 0.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace kolo::train {

// Empty where the text is allowed; otherwise what was expected and what there is. As CLI11's
// Option::check takes it; CLI11 puts the flag's name before it.
using ValueRule = std::function<std::string(const std::string& text)>;

// A whole number in [least, most].
ValueRule whole_number(std::int64_t least,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());

enum class Least { included, excluded };
// A finite number from `least` (or above it) to below `limit`.
ValueRule real_number(double least, Least is,
                      double limit = std::numeric_limits<double>::infinity());

// Not empty, as a shell's variable is that was never set. `expected`: "a folder".
ValueRule nonempty_text(std::string expected);

// One of `names`; `what` they are: "model".
ValueRule one_of(std::string what, std::vector<std::string> names);

// A data set, as open_dataset takes it, as far as its kind goes.
ValueRule known_dataset();

}  // namespace kolo::train
