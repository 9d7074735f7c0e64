// Runs a schedule symbolically, for all ranks at once, and proves it or says what is wrong.
//
// Every element of every buffer is a *value*: which ranks have contributed to it, to which element
// it belongs, whether its reduction was declared complete and whether a server's update has seen
// it. Channels are queues that hold a given number of segments. What is proved, for one size, count
// and segment length:
//
//   - the result: every output element is the reduction of exactly the right contributions, each
//     counted once, in its right place; averages are divided once, when complete; updates are
//     applied once; a scaled sum, which scales what steps read of the input, scales each
//     contribution once
//   - the same bits on every rank: where all hold the result, all combined the same in the same
//     order, or have it from one who did
//   - whether operands were combined in the order of the ranks, and if so whether always one rank's
//     at a time; that is no fault, but what some operations need (algorithm_table.h)
//   - no deadlock with that much credit. Ranks are sequential processes that block on queues, so
//     whether they deadlock does not depend on who runs when (Kahn 1974): one interleaving proves
//     all
//   - nothing is read before it is written, and no memory is written while a send from it may still
//     be under way: the receipt must have happened before the write, by the messages between them
//     (Lamport 1978); a step that sends a copy is free of that
//   - both ends of a channel agree on every segment's length and on who answers what; nothing is
//     left over
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
  int credit = kMinimumCredit;  // segments in flight per channel and direction, headers included
  bool is_in_place = false;     // input and output are one memory, as the communicator allows
  int root = 0;                 // broadcast, reduce, gather, scatter; who sends a message
  // Elements of every chunk, by rank (ranks may know different things); empty: count, split evenly.
  std::vector<std::vector<std::size_t>> lengths = {};
  bool has_update = false;        // push, push_pull: the result must have been updated
  std::vector<int> servers = {};  // push, pull: ranks that serve and do not work; server i: chunk i
};

struct CheckReport {
  std::string fault;              // empty: proved
  std::vector<std::size_t> sent;  // elements, by rank
  int most_in_flight = 0;         // segments on any one channel at any time
  // The first place where a left operand had contributions of later ranks than the right one began
  // with; empty: nowhere.
  std::string disorder;
  // The first place where a right operand was more than one rank's contribution; empty: nowhere.
  std::string regrouping;

  bool is_proved() const { return fault.empty(); }
  // x0 op x1 op x2 ..., with brackets anywhere: as good as any order where op is associative.
  bool is_in_order() const { return disorder.empty(); }
  // ((x0 op x1) op x2) ...: a left fold, the same bits whatever the operation.
  bool is_rank_ordered() const { return is_in_order() && regrouping.empty(); }
};

// `program` holds the schedule of every rank, in order. At most 256 ranks: std::invalid_argument
// beyond.
CheckReport check(std::span<const Schedule> program, const CheckOptions& options);

}  // namespace kolo
