// What channels cost, measured: a few messages between two ranks, at the start of a job.
//
// One pair of ranks that share a host, and one that does not, play ping-pong (latency) and stream
// (per segment, per byte); each rank times the passes over memory that a step makes; and where a
// host has more ranks than cores all of them exchange messages with their neighbours, which says
// what it costs that one waits while another has the core (planner/oversubscription.h). Some
// milliseconds over TCP, less in shared memory. The others sleep meanwhile.
//
// The terms are those of LogGP (Alexandrov et al. 1995), as in simulator.h.
#pragma once

#include <span>

#include "collectives/costs.h"
#include "transports/base/waiting.h"
#include "transports/rendezvous.h"
#include "transports/transport.h"

namespace kolo {

struct ProbeRequest {
  int rank = 0;
  int size = 1;
  std::span<Channel* const> channels;  // by rank, null for this one; nothing is under way on them
  std::span<const int> hosts;          // by rank
  int cores = 1;                       // of this rank's host, for its ranks
  Transport* transport = nullptr;
  WaitPolicy* policy = nullptr;
  Store* store =
      nullptr;  // keys begin with "probe/"; who waits for long says for whom (engine/wait_graph.h)
  Clock::time_point begin = Clock::now();  // of what the deadline ends
  Deadline deadline;
};

// Collective over all ranks; the same on all of them. What there is no pair for costs what the
// other kind does. kolo::Error: a peer is lost, or one that all wait for does not answer.
Costs measure_costs(const ProbeRequest& request);

}  // namespace kolo
