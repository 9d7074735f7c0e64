// Measured costs of sending, receiving, copying and reducing on this machine, for the simulator. In
// microseconds, and microseconds per byte.
#pragma once

namespace kolo::inline v0 {

// Costs of a channel between two ranks, without the copies to and from memory on both ends.
struct Link {
  double latency_us = 0.2;  // from the end of the sending step to the arrival of the segment
  double send_us = 0;       // per segment: the time that keeps its sender busy
  double receive_us = 0;
  double next_us = 0;  // instead of send_us and receive_us, if sent with the segment before (kMore)
  double send_us_per_byte = 0;
  double receive_us_per_byte = 0;

  friend bool operator==(const Link&, const Link&) = default;
};

struct Costs {
  Link local;                        // between ranks of one host
  Link remote;                       // between hosts
  double overhead_us = 0.1;          // per step and segment
  double copy_us_per_byte = 1e-4;    // a pass over memory: into a slot, or out of one
  double reduce_us_per_byte = 1e-4;  // a pass that reduces, instead of a copy
  // If a host has more ranks than cores, a waiting rank yields its core to the next rank. Each such
  // change of ranks takes this time.
  double switch_us = 0;
  int cores = 0;  // per host; 0: one per rank

  friend bool operator==(const Costs&, const Costs&) = default;
};

}  // namespace kolo::inline v0
