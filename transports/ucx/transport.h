// Transport over UCX (openucx.org): shared memory, TCP, InfiniBand and UCX's other transports. The
// user's UCX_TLS and other UCX_* variables choose among them. libucp is loaded at the first use of
// this transport.
//
// A segment is an active message with its number in the header. Short segments, and all segments
// where UCX can only copy, are sent eagerly and stay in UCX until they are taken. For others UCX
// uses rendezvous: it announces the segment and fetches it once the receiver has memory for it.
// Then receive() costs no copy except the network's own. Credit is counted in segments.
//
// UCX reports the death of a peer late, if at all. Within a host the liveness sockets report it
// (liveness.h); between hosts UCX's error handling does.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/registry.h"

namespace kolo::inline v0 {

struct UcxSettings {
  std::size_t segment_bytes =
      256 * 1024;  // a multiple of kSegmentAlignment, the same on every rank

  // Preferred size if all ranks are on one host and UCX has queues in shared memory: such segments
  // fit into the queue's buffers (buffer_sizes.h). It is as good if the kernel copies long segments
  // (cma).
  std::size_t queued_segment_bytes = 16 * 1024;

  bool asks_as_told = false;  // UCX chooses between eager and rendezvous by itself
};

// Collective over the request's ranks. Returns when all ranks are connected, or, for more than 32
// ranks, when all have published their addresses. Error kUnavailable if UCX cannot be loaded or has
// no usable transport; kDeadline names the missing ranks.
std::unique_ptr<Transport> make_ucx(const TransportRequest& request,
                                    const UcxSettings& settings = {});

}  // namespace kolo::inline v0
