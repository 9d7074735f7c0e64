// How the ranks of one host come to share memory, two by two.
//
// Every rank listens on a unix socket whose name the kernel chose, and publishes it in the store
// with a *ticket*, a random number that only readers of the store can know. Then the lower rank of
// each pair connects to the higher, and in one message says hello (magic, version, the other's
// ticket, its own rank) and hands over the memory for both. The higher answers with a hello of its
// own. Whoever else connects, or says something else, is dropped; who says nothing in time, too.
//
// The socket stays: it wakes sleepers, and its end tells of a death.
#pragma once

#include <vector>

#include "transports/registry.h"
#include "transports/shm/channel.h"

namespace kolo::shm {

// The pairs of this rank, in order of peers. Collective over all ranks of the request. Errors:
// kUnavailable where ranks are on different hosts or one of them has no memfd (all ranks are told,
// and which); kDeadline naming who has not come; kProtocol where ranks differ in build or segment
// size; kAborted when a failure is posted meanwhile.
std::vector<Pair> connect_pairs(const TransportRequest& request, const Layout& layout,
                                bool has_remote_barriers);

}  // namespace kolo::shm
