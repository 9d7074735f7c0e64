// What work on a device's streams costs, for the planner of calls on streams.
//
// Nothing is measured: a job shall not keep its devices busy before it has called anything, and
// ranks that share one would measure each other. Bytes are priced by what the driver says of the
// device's memory, the rest by constants: a copy or a kernel behind another on its stream takes 2
// us, a word that a stream writes or waits for 1 us, and 1.5 us until the other's stream sees it,
// as words lie in the host's memory. The constants are what such work takes on devices of 2020 and
// later by their makers' and others' accounts; no device has run this. They matter by their
// proportion: with them short calls prefer few steps, and long ones few passes.
#pragma once

#include "collectives/costs.h"

namespace kolo {

struct DeviceSpeed {
  double memory_GBps = 0;     // at best, reads and writes together; 0: not known
  double link_GBps = 0;       // into another device's memory
  bool is_one_device = true;  // all ranks are on one
};

// `overhead_us` is that of a launch; every step makes one. Ranks that share a device have it in
// turn, as ranks have a core.
Costs device_costs(const DeviceSpeed& speed);

}  // namespace kolo
