// Statistics of a communicator, which are always counted, and the cost of its steps, on request:
// sums for every kind of step, and a timeline of the steps.
//
// For calls on streams, steps are timed on the host: the time to enqueue a step, under a name of
// its own ("enqueue send"). The host's clock cannot say when and how long the device runs it.
//
// Recording of steps is off by default. The executor then tests one pointer per advance(), and
// nothing per segment. When on, each step reads the clock twice more (about 50 ns). So the shares
// of the steps are right, and the whole is a little slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../transports/transport.h"
#include "schedule.h"

namespace kolo::inline v0 {

// Bytes as counted by the channels. The formulas of the algorithms give the payload, without
// headers.
struct CommunicatorStatistics {
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t header_bytes_sent = 0;
  std::uint64_t bytes_sent_to_other_hosts = 0;  // payload and headers
  std::uint64_t operations = 0;
};

// Traffic between this rank and a peer, and how and how long this rank waited for that peer.
// Includes the measurement of costs at the start.
struct PeerStatistics {
  ChannelStatistics channel;
  WaitStatistics waits;
  // The part of it that is payload of calls on streams: bytes and segments, counted when they are
  // enqueued, even if they have not moved yet. (`channel` counts them too; some transports do so
  // only when they have moved.)
  ChannelStatistics on_streams = {};
  std::string transport = {};  // that joins the two ranks: "shm", "tcp"; empty for this rank itself
  std::string address = {};    // of the peer, that the connection uses: "10.0.0.2"
};

// Sum over all steps of one kind so far. One step here is one segment.
struct StepProfile {
  // to_string(StepKind), or "drain": the wait for the last sends. On streams the same with "enqueue
  // " before it, and "enqueue opening": call headers sent to a peer or received from it.
  std::string_view kind;
  std::uint64_t steps = 0;  // segments
  std::uint64_t bytes = 0;  // of those segments
  double worked_us = 0;     // inside the step: copying, reducing, calls of the transport
  // Time from the first try of a step to the try that succeeds; 0 if the first one does. A try
  // fails if there is no segment or no credit. On streams it fails if the channel says "not now"
  // (StreamChannel), for example because the peer's host has not enqueued its part yet, or has not
  // read this rank's earlier call headers. A rank normally enqueues an operation before the peers'
  // call headers arrive, so the time until they arrive is not counted.
  double waited_us = 0;
};

}  // namespace kolo::inline v0
