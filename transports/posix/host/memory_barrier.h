// Asymmetric memory barriers: the rare side pays for both sides.
//
// Two ranks each store a flag and then load the other's flag ("is it asleep?", "is there data?").
// Both need a full barrier in between, or both may miss the other's store. With membarrier(2), the
// rank that goes to sleep, which is slow anyway, runs that barrier on all cores of registered
// processes. The sending rank then needs only `keep_order()`. See "Expedited membarrier" in the
// Linux documentation, and liburcu, which uses the same method.
#pragma once

#include <atomic>

namespace kolo::inline v0::posix {

// Registers this process to receive barriers of other processes. False if the kernel cannot; then
// the frequent side needs full barriers. Cheap to repeat.
bool accept_barriers() noexcept;

// Full barrier on this core and on every core that runs a registered process. Costs a few
// microseconds.
void barrier_everywhere() noexcept;

// Compiler barrier for the frequent side.
inline void keep_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

}  // namespace kolo::inline v0::posix
