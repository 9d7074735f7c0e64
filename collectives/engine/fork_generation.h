// Detects that this process is a fork()ed child. A child must neither use nor close its parent's
// threads, sockets and shared memory.
#pragma once

#include <cstdint>

namespace kolo::inline v0 {

// Constant within a process, different in every child made by fork(). After the first call it costs
// one memory read.
std::uint64_t fork_generation();

}  // namespace kolo::inline v0
