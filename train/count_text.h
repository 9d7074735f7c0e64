// Text of a count with a noun, singular or plural.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace kolo::train {

// "1 sample", "2 samples".
inline std::string count_text(std::integral auto count, std::string_view one) {
  return std::to_string(count) + " " + std::string(one) + (count == 1 ? "" : "s");
}

}  // namespace kolo::train
