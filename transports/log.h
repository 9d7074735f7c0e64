// Log of a communicator: texts that no call can return, such as a timeline that could not be
// written at the end, or an unknown setting.
#pragma once

#include <functional>
#include <string_view>

namespace kolo::inline v0 {

// Gets one line without its end. Called from threads that use the communicator, also from its
// destructor; it must not use the communicator, and what it throws is ignored.
using Log = std::function<void(std::string_view line)>;

// Gives the line to the log; if that is empty, to standard error as "kolo: LINE".
void write_line(const Log& log, std::string_view line) noexcept;

}  // namespace kolo::inline v0
