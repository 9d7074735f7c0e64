// Transport for ranks that are threads of one process; the simplest one, to read first.
//
// Each pair of ranks has two rings of slots, one per direction, each with a single producer and a
// single consumer. A segment is a slot. One counter holds the number of segments sent, another the
// number taken.
//
// Cost: per segment one cache line for the counter, and the segment's own lines. send() and
// receive() copy once.
#pragma once

#include <cstddef>
#include <memory>

#include "transports/registry.h"

namespace kolo::inline v0 {

struct InprocSettings {
  std::size_t segment_bytes = 64 * 1024;  // four of these fit into a core's own cache
  int slots = kMinimumCredit;             // per direction; a power of two
};

// Collective over the request's ranks. Error kUnavailable if they are not threads of one process.
std::unique_ptr<Transport> make_inproc(const TransportRequest& request,
                                       const InprocSettings& settings);

}  // namespace kolo::inline v0
