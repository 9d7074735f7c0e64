// What a communicator counts of itself, always; and what its steps cost, for who asks: sums for
// every kind of step, and the steps themselves on a timeline.
//
// Of calls on streams it is what the host does to give a step to its stream, under names of their
// own ("enqueue send"): when the device does it, and for how long, no clock of the host's says.
//
// What steps cost is off by default, and then the executor asks one pointer for every advance(),
// nothing for a segment. On, a step costs two more readings of the clock (some 50 ns), so that the
// shares are right and the whole is a little slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../transports/transport.h"
#include "schedule.h"

namespace kolo {

// Bytes as the channels counted them: what the formulas of the algorithms speak of, headers apart.
struct CommunicatorStatistics {
  std::uint64_t payload_bytes_sent = 0;
  std::uint64_t payload_bytes_received = 0;
  std::uint64_t header_bytes_sent = 0;
  std::uint64_t bytes_sent_to_other_hosts = 0;  // payload and headers
  std::uint64_t operations = 0;
};

// What passed between this rank and a peer, the measuring of costs at the start included, and how
// this rank waited for it.
struct PeerStatistics {
  ChannelStatistics channel;
  WaitStatistics waits;
  // Of that, what this rank's calls on streams had to do with the peer: bytes and segments of
  // payload, counted when they are given to a stream, be they moved yet or not. (`channel` counts
  // them too, some transports when they have moved.)
  ChannelStatistics on_streams = {};
};

// All steps of one kind so far, each one segment long.
struct StepProfile {
  // to_string(StepKind), or "drain": the wait for the last sends. On streams "enqueue " and that;
  // and "enqueue opening": the words with which an operation opens a channel, given to a peer or
  // heard of it.
  std::string_view kind;
  std::uint64_t steps = 0;  // segments
  std::uint64_t bytes = 0;  // of those segments
  double worked_us = 0;     // in the call that did it: copying, reducing, the transport's part
  // Between the first try, which found no segment or no credit, and it. On streams: between the
  // first try, which found that a peer's host has yet to give its part, or to read what was said
  // before, and it. Openings over the host's channels are heard beside the calls, which wait for
  // them only where this rank is too far ahead: of these the time between the start of their
  // operation and their coming is no wait, and is not counted.
  double waited_us = 0;
};

}  // namespace kolo
