// Ranks as threads of one process: the transport to read first.
//
// Between any two ranks lie two rings of slots, one per direction, each written by one thread and
// read by one. A segment is a slot; a counter says how many have been sent and another how many
// have been taken. That is all.
//
// Cost: one cache line moves per segment for the counter, and the segment's own lines. send() and
// receive() copy once.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/registry.h"

namespace kolo {

struct InprocSettings {
  std::size_t segment_bytes = 64 * 1024;  // four of these stay in a core's own cache
  int slots = kMinimumCredit;             // per direction; a power of two
};

// Collective over the request's ranks, which must be threads of one process: Error kUnavailable if
// they are not.
std::unique_ptr<Transport> make_inproc(const TransportRequest& request,
                                       const InprocSettings& settings);

}  // namespace kolo
