// Checker: runs a schedule symbolically for all ranks at once, and proves it or reports a fault.
//
// Every element of every buffer is a *value*: the ranks that contributed to it, the element it
// belongs to, whether its reduction was declared complete, and whether a server's update was
// applied. Channels are queues with a given capacity in segments. For one size, count and segment
// length it proves:
//
//   - correct results: every output element is the reduction of exactly the right contributions,
//     each counted once, at its place. Averages are divided once, when complete. Updates are
//     applied once. A scaled sum scales the input where steps read it: each contribution once.
//   - the same bits on every rank: all ranks that hold the result combined it in the same order, or
//     received it from a rank that did.
//   - no deadlock with the given credit. Ranks are sequential processes that block on queues, so a
//     deadlock does not depend on scheduling (Kahn 1974), and one interleaving proves all.
//   - no read before a write, and no write to memory while a send from it may be in flight. The
//     receipt must have happened before the write, by the messages between them (Lamport 1978).
//     Steps that send a copy are exempt.
//   - both ends of a channel agree on the length of every segment and on answers. No segment is
//     left over.
//
// It also reports, without a fault:
//
//   - whether operands were combined in the order of the ranks, and whether the right operand was
//     always one rank's. Some operations need that (algorithm_table.h).
//   - how many elements each rank sends, to compare with the algorithm's formula.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

struct CheckOptions {
  std::size_t count = 1;             // elements of the operation
  std::size_t segment_elements = 1;  // elements of a segment
  int credit = kMinimumCredit;  // segments in flight per channel and direction, headers included
  bool is_in_place = false;     // input and output are the same memory, as the communicator allows
  int root = 0;                 // for collectives with a root; of a message: the sender
  // Elements of every chunk, by rank (ranks may know different lengths). Empty: count, split
  // evenly.
  std::vector<std::vector<std::size_t>> lengths = {};
  bool has_update = false;        // push, push_pull: the result must be updated
  std::vector<int> servers = {};  // push_pull, push, pull: dedicated servers, which do not work
};

struct CheckReport {
  std::string fault;              // empty: proved
  std::vector<std::size_t> sent;  // elements, by rank
  int most_in_flight = 0;         // maximum over all channels
  // The first step whose left operand has contributions of later ranks than the first rank of its
  // right operand; empty: none.
  std::string disorder;
  // The first step whose right operand has contributions of several ranks; empty: none.
  std::string regrouping;

  bool is_proved() const { return fault.empty(); }
  // x0 op x1 op x2 ..., with any brackets: sufficient if op is associative.
  bool is_in_order() const { return disorder.empty(); }
  // ((x0 op x1) op x2) ...: a left fold, which gives the same bits for any operation.
  bool is_rank_ordered() const { return is_in_order() && regrouping.empty(); }
};

// `program`: the schedule of every rank, in order. Throws std::invalid_argument beyond 256 ranks.
CheckReport check(std::span<const Schedule> program, const CheckOptions& options);

}  // namespace kolo::inline v0
