// Costs of work on a device's streams, for the planner of calls on streams.
//
// Nothing is measured: a job must not occupy its devices before its first call, and ranks that
// share a device would measure each other. Bytes are priced by the memory bandwidth that the driver
// reports. The rest are constants. A copy or kernel behind another on its stream takes 2 us. A word
// that a stream writes or waits for takes 1 us. Another device sees the word 1.5 us later, as words
// lie in host memory. Another process on the same device sees it some 100 us later: the device has
// to switch contexts. So ranks that share a device prefer few hops, even for megabytes.
//
// The constants follow published numbers for devices since 2020; no device has run this code. Their
// ratio matters: short calls prefer few steps, and long calls prefer few passes over memory.
#pragma once

#include "collectives/costs.h"

namespace kolo::inline v0 {

struct DeviceSpeed {
  double memory_GBps = 0;     // peak, reads plus writes; 0: unknown
  double link_GBps = 0;       // to another device's memory
  bool is_one_device = true;  // all ranks share one device
};

// In the result, every step costs `overhead_us`, the time of one launch. Ranks that share a device
// take turns on it, as ranks that share a core do.
Costs device_costs(const DeviceSpeed& speed);

}  // namespace kolo::inline v0
