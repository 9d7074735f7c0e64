// Limit of a device that holds all ranks' buffers: the time to copy as many bytes as the collective
// must read and write.
//
// A copy of n bytes reads n and writes n. An all-reduce of n bytes on two ranks reads and writes
// both buffers, so it takes at least as long as two copies of n.
#pragma once

#include <cstddef>
#include <optional>

#include "bench/device/memory.h"
#include "bench/measure/library.h"

namespace kolo::bench {

// Bytes that all ranks together must read and write, each once. 0: none.
std::size_t bytes_on_device(const Problem& problem, int ranks);

// Microseconds from the call until the host sees the end of the stream: the median of rounds for
// about `seconds`. It copies between two buffers that are together as long as all ranks' buffers.
// None if there is nothing to copy, or if the device has no memory for them.
std::optional<double> copies_on_device_us(DeviceMemory& device, const Problem& problem, int ranks,
                                          double seconds);

}  // namespace kolo::bench
