// One-sided memory barriers: who seldom acts pays for both sides.
//
// Two ranks that each store and then look at the other's store (has it gone to sleep? is there
// news?) need a full barrier in between, or both may miss the other. membarrier(2) lets the rank
// that goes to sleep, which is slow anyway, run that barrier on every core where a registered
// process is running; the rank that sends then needs none, only `keep_order()`. See "Expedited
// membarrier" in Linux' Documentation, and liburcu, which does the same.
#pragma once

#include <atomic>

namespace kolo::posix {

// Lets other processes' barriers reach this process's threads. False where the kernel cannot; then
// the hot side needs full barriers. Cheap to repeat.
bool accept_barriers() noexcept;

// A full barrier on this core and on every core that runs a process which accepts barriers. Costs
// some microseconds.
void barrier_everywhere() noexcept;

// The hot side's part: the compiler keeps the order of what stands before and after.
inline void keep_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace kolo::posix
