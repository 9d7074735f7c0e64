// What one device takes at least where all ranks' buffers are in its memory: the time in which it
// copies as many bytes as the collective has to read and to write there.
//
// A copy of n bytes reads n and writes n. So an all-reduce of n bytes by two ranks, which reads
// both buffers and writes both, takes at least as long as two copies of n, whoever adds.
#pragma once

#include <cstddef>
#include <optional>

#include "bench/device/memory.h"
#include "bench/measure/library.h"

namespace kolo::bench {

// Bytes that all ranks together have to read and to write, each once. 0: nothing.
std::size_t bytes_on_device(const Problem& problem, int ranks);

// Microseconds from the call until the host has seen the stream's end: the median of rounds for
// about that many seconds, of copies between two buffers that are together as long as those of all
// ranks. None where there is nothing to copy, or the device has no room for them.
std::optional<double> copies_on_device_us(DeviceMemory& device, const Problem& problem, int ranks,
                                          double seconds);

}  // namespace kolo::bench
