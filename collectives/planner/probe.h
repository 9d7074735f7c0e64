// Measurement of channel costs: a few messages between two ranks, at the start of a job.
//
// One pair of ranks on one host, and one pair on two hosts, measure latency (ping-pong) and the
// costs per segment and per byte (stream). Rank 0 times the passes over memory that a step makes.
// If a host has more ranks than cores, all ranks exchange messages with their neighbours. This
// gives the cost of waiting while another rank has the core (planner/oversubscription.h). It takes
// some milliseconds over TCP, less in shared memory. Ranks that do not measure sleep meanwhile.
//
// On slow links each pair stops after a second, or an eighth of the time to the deadline. What is
// not measured by then follows from the first messages: one round trip, and one segment of 4 KiB.
//
// The terms are those of LogGP (Alexandrov et al. 1995), as in simulator.h.
#pragma once

#include <span>

#include "collectives/costs.h"
#include "transports/base/waiting.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

struct ProbeRequest {
  int rank = 0;
  int size = 1;
  std::span<Channel* const> channels;  // by rank, null for this one; with nothing in flight
  std::span<const int> hosts;          // by rank
  int cores = 1;                       // of this rank's host, usable by its ranks
  Transport* transport = nullptr;
  WaitPolicy* policy = nullptr;
  Store* store =
      nullptr;  // keys begin with "probe/"; long waits are published (engine/wait_graph.h)
  Clock::time_point begin = Clock::now();  // start of the timeout, for its message
  Deadline deadline;
};

// Collective over all ranks, with the same result on all of them. A kind of link without a pair
// gets the costs of the other kind. Throws kolo::Error if a peer is lost or does not answer.
Costs measure_costs(const ProbeRequest& request);

}  // namespace kolo::inline v0
