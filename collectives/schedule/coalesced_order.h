// The order in which the steps of a brief operation run, in which no chunk has more than one
// segment.
//
// Turns are no help there: a step has its segment or has none. What costs is every message, and a
// rank that sends several chunks to one peer (halving and doubling, Bruck, trees that scatter) can
// send them as one: a system call, a wake-up and a packet instead of several. So a send moves up to
// the last one to the same peer, past steps that do not write what it sends, and only where the
// channel takes all that the operation sends there at once. Then no send ever waits for anything
// that the operation has yet to do, and running it earlier can block nobody; and as the order of
// segments on every channel is as before, nobody needs to know of it. The checker proves these
// orders as well.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo {

// Indices into schedule.steps, of those of the first slice. `credit`: segments that every channel
// takes before the peer has released any; what opens the channel may be one of them.
std::vector<std::size_t> coalesced_order(const Schedule& schedule, int credit);

// Both send to one peer, and the first may wait for the second (kMore of transport.h): it is
// followed by it.
bool is_coalesced_with_next(const Step& first, const Step& second);

// A schedule for brief operations that says the same in its order of steps: what the checker
// proves.
Schedule coalesced_schedule(const Schedule& schedule, int credit);

}  // namespace kolo
