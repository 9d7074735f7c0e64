// Ranks joined by UCX (openucx.org): shared memory, TCP, InfiniBand or whatever else its transports
// reach, as the user's UCX_TLS and the other UCX_* variables say. libucp is loaded when this
// transport is first asked for.
//
// A segment is an active message with its number in the header. Where UCX can only copy, and
// wherever it is short, it is sent as it is (eagerly) and lies with UCX until it is taken; else UCX
// announces it, and fetches it when the receiver has a place for it (its rendezvous): receive() of
// one then costs no copy but the network's own. Credit is counted in segments.
//
// UCX notices the death of a peer in its own time, if at all: within a host another way tells
// (ucx/lifeline.h), between hosts it is UCX's error handling.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/registry.h"

namespace kolo {

struct UcxSettings {
  std::size_t segment_bytes = 256 * 1024;  // a multiple of kSegmentAlignment, alike on every rank

  // Preferred where all ranks are on one host and UCX has queues in shared memory: such fit into
  // the queue's buffers (ucx/pieces.h). It is as good where the kernel copies long ones (cma).
  std::size_t queued_segment_bytes = 16 * 1024;

  bool asks_as_told = false;  // UCX decides for itself which segments it only announces at first
};

// Collective over the request's ranks: all are connected when it returns, or, of many, have
// published their addresses. Error kUnavailable where UCX cannot be loaded or has no transport to
// run on; kDeadline names the ranks that did not come.
std::unique_ptr<Transport> make_ucx(const TransportRequest& request,
                                    const UcxSettings& settings = {});

}  // namespace kolo
