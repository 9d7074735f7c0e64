// Order of the steps of a single-segment operation, in which no chunk has more than one segment.
//
// Every message has a cost. A rank that sends several chunks to one peer (halving and doubling,
// Bruck, scatter trees) can send them as one: one system call, wake-up and packet instead of
// several. So a send moves up to the previous send to the same peer, past steps that do not write
// the sent data. This requires that the channel's credit covers all that the operation sends to
// that peer.
//
// Then no send waits for a later part of the operation, so sending earlier cannot block any rank.
// The order of segments on every channel is unchanged, so no peer needs to know. The checker proves
// these orders too.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

// Indices into schedule.steps, for the steps of the first slice. `credit`: segments that every
// channel takes before the peer has released any; the call header may be one of them.
std::vector<std::size_t> coalesced_order(const Schedule& schedule, int credit);

// True if both send to the same peer, so that the first may wait for the second (kMore of
// transport.h).
bool is_coalesced_with_next(const Step& first, const Step& second);

// The schedule with its steps in this order, for single-segment operations. The checker proves it.
Schedule coalesced_schedule(const Schedule& schedule, int credit);

}  // namespace kolo::inline v0
