// Checks that stay on in release: they find bugs of the calling program, at the cost of a
// predictable branch.
#pragma once

#include <string_view>

namespace kolo {

[[noreturn]] void fail_check(std::string_view message);

// std::invalid_argument with the message unless it holds.
inline void check(bool holds, std::string_view message) {
  if (!holds) [[unlikely]]
    fail_check(message);
}

}  // namespace kolo
