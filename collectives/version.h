// Version of the linked kolo library.
#pragma once

#include <string_view>

namespace kolo::inline v0 {

// Major, minor, patch: "0.2.0".
std::string_view version();

}  // namespace kolo::inline v0
