// Whether this process is a child of the one that made something: what has threads, sockets and
// shared memory under way is not the child's to use, or to end.
#pragma once

#include <cstdint>

namespace kolo {

// The same as long as the process is, another in every child by fork(). After the first call a look
// at memory.
std::uint64_t fork_generation();

}  // namespace kolo
