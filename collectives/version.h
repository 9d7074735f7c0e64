// Which kolo a program has been linked with.
#pragma once

#include <string_view>

namespace kolo {

// "0.1.0": major, minor, patch.
std::string_view version();

}  // namespace kolo
