// Log of a communicator: warnings and errors that no call returns, such as an unknown setting or a
// failed write of the timeline.
#pragma once

#include <functional>
#include <string_view>

namespace kolo::inline v0 {

// Receives one line, without a newline. Called from threads that use the communicator, also from
// its destructor. It must not use the communicator. Its exceptions are ignored.
using Log = std::function<void(std::string_view line)>;

// Passes the line to the log. An empty log: prints "kolo: LINE" to standard error.
void write_line(const Log& log, std::string_view line) noexcept;

}  // namespace kolo::inline v0
