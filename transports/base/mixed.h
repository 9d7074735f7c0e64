// Transport made of two: a local one joins the ranks of a host, a remote one all other pairs.
//
// A channel is a channel of one of the two, so a segment costs what it costs there. A waiting rank
// makes progress on both, and sleeps on both descriptors together. If one of the two has no
// descriptor to sleep on, the rank yields.
//
// Channels of the two differ in their Capabilities. Upper layers agree on common values across the
// ranks (collectives/executor/plan_cache.h).
#pragma once

#include <memory>
#include <vector>

#include "transports/transport.h"

namespace kolo::inline v0 {

// `is_local`: by peer, whether `local` joins it to this rank. Both have the rank and the size of
// the job. The name is "shm+tcp".
std::unique_ptr<Transport> make_mixed(std::unique_ptr<Transport> local,
                                      std::unique_ptr<Transport> remote,
                                      std::vector<bool> is_local);

}  // namespace kolo::inline v0
