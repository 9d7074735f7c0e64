// What sending, receiving, copying and reducing cost on the machine at hand: what the simulator's
// clock goes by. Microseconds, and microseconds per byte.
#pragma once

namespace kolo {

// A channel between two ranks, beside the passes over memory that both make.
struct Link {
  double latency_us = 0.2;  // from the end of the step that sends a segment to its arrival
  double send_us = 0;  // each segment keeps its sender busy for that long, its receiver for this
  double receive_us = 0;
  double next_us = 0;  // instead of both, of a segment that goes with the one before (kMore)
  double send_us_per_byte = 0;
  double receive_us_per_byte = 0;

  friend bool operator==(const Link&, const Link&) = default;
};

struct Costs {
  Link local;                        // between ranks of one host
  Link remote;                       // between hosts
  double overhead_us = 0.1;          // of a step, per segment
  double copy_us_per_byte = 1e-4;    // a pass over memory: into a slot, or out of one
  double reduce_us_per_byte = 1e-4;  // in place of a copy
  // Where a host has more ranks than cores: a rank that must wait yields its core to the next in
  // turn, who finds so much later whether it can go on.
  double switch_us = 0;
  int cores = 0;  // of a host; 0: one for each rank

  friend bool operator==(const Costs&, const Costs&) = default;
};

}  // namespace kolo
