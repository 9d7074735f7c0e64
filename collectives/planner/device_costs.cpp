#include "collectives/planner/device_costs.h"

#include <algorithm>

namespace kolo::inline v0 {
namespace {

constexpr double kLaunchUs = 2;
constexpr double kWordUs = 1;
constexpr double kSeenUs = 1.5;    // by another device
constexpr double kSwitchUs = 100;  // by another process on the same device
constexpr double kUnknownGBps = 1000;
constexpr double kReached = 0.9;  // achieved fraction of the peak bandwidth

}  // namespace

// A send writes one word. A receive waits for one and writes another. Streams do not batch
// segments.
Costs device_costs(const DeviceSpeed& speed) {
  const double memory = kReached * (speed.memory_GBps > 0 ? speed.memory_GBps : kUnknownGBps);
  Costs costs;
  costs.overhead_us = kLaunchUs;
  costs.copy_us_per_byte = 2e-3 / memory;    // one read, one write
  costs.reduce_us_per_byte = 3e-3 / memory;  // two reads, one write
  // Processes that share a device run in time slices. The peer sees the word only after a context
  // switch, which takes 50 to 300 us.
  costs.local.latency_us = speed.is_one_device ? kSwitchUs : kSeenUs;
  costs.local.send_us = kWordUs;
  costs.local.receive_us = 2 * kWordUs;
  costs.local.next_us = (costs.local.send_us + costs.local.receive_us) / 2;
  if (!speed.is_one_device && speed.link_GBps > 0)
    costs.local.send_us_per_byte = std::max(0.0, 1e-3 / speed.link_GBps - costs.copy_us_per_byte);
  costs.remote = costs.local;
  costs.cores = speed.is_one_device ? 1 : 0;
  return costs;
}

}  // namespace kolo::inline v0
