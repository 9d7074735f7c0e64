// Runs a schedule symbolically, for all ranks at once, and proves it or says what is wrong.
//
// Every element of every buffer is a *value*: which ranks have contributed to it, to which element
// it belongs, whether its reduction was declared complete and whether a server's update has seen
// it. Channels are queues that hold a given number of segments. What is proved, for one size, count
// and segment length:
//
//   - the result: every output element is the reduction of exactly the right contributions, each
//   counted once, in its
//     right place; averages are divided once, when complete; updates are applied once
//   - no deadlock with that much credit. Ranks are sequential processes that block on queues, so
//   whether they deadlock
//     does not depend on who runs when (Kahn 1974): one interleaving proves all
//   - nothing is read before it is written, and no memory is written while a send from it may still
//   be under way: the
//     receipt must have happened before the write, by the messages between them (Lamport 1978)
//   - both ends of a channel agree on every segment's length and on who answers what; nothing is
//   left over
//   - how many elements each rank sends, to be compared with the algorithm's formula
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule.h"
#include "transports/transport.h"

namespace kolo {

struct CheckOptions {
  std::size_t count = 1;             // elements of the operation
  std::size_t segment_elements = 1;  // elements of a segment
  int credit = kMinimumCredit;    // segments in flight per channel and direction, headers included
  bool is_in_place = false;       // input and output are one memory, as the communicator allows
  int root = 0;                   // broadcast
  bool has_update = false;        // push_pull: the result must have been updated
  std::vector<int> servers = {};  // push_pull: ranks that serve and do not work
};

struct CheckReport {
  std::string fault;              // empty: proved
  std::vector<std::size_t> sent;  // elements, by rank
  int most_in_flight = 0;         // segments on any one channel at any time

  bool is_proved() const { return fault.empty(); }
};

// `program` holds the schedule of every rank, in order. At most 256 ranks: std::invalid_argument
// beyond.
CheckReport check(std::span<const Schedule> program, const CheckOptions& options);

}  // namespace kolo
