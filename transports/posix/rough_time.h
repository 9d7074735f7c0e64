// The time of std::chrono::steady_clock, rounded up to the kernel's next tick (1 to 10 ms): for
// deadlines of operations that come by the million a second. No errors; any thread.
#pragma once

#include <chrono>

namespace kolo::posix {

// Never earlier than what steady_clock::now() says.
std::chrono::steady_clock::time_point rough_time();

}  // namespace kolo::posix
