// Interface of a device for a benchmark: memory, copies, and a stream per rank.
//
// Implementations: NVIDIA devices (cuda_memory.cpp, in builds with CUDA) or, in tests, plain
// memory. Threading: the thread of the rank that opened it. Failures are kolo::Error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "collectives/rank_device.h"

namespace kolo::bench {

// Work captured from a rank's stream.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;
  virtual ~DeviceGraph() = default;

  // Launches the work once more, in the order of that stream.
  virtual void launch() = 0;
};

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  virtual ~DeviceMemory() = default;

  // "NVIDIA H200, compute capability 9.0, ..."
  virtual std::string describe() const = 0;
  // The device object that a communicator needs for calls on the stream.
  virtual std::shared_ptr<const RankDevice> rank_device() const = 0;
  // This rank's device number, and the number of devices.
  virtual int number() const = 0;
  virtual int count() const = 0;
  // The same device with another stream.
  virtual std::shared_ptr<DeviceMemory> beside() const = 0;

  // The runtime's stream handle. The stream does not wait for the default stream.
  virtual void* stream() const = 0;
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes) = 0;
  // Pins host memory while the result lives, so that copies run at full speed.
  virtual std::shared_ptr<void> pin(std::span<std::byte> memory) = 0;
  // Copies between any memories of host and device, in the order of the stream.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // Waits on the host for all work of the stream.
  virtual void wait() = 0;
  // Captures the work that `calls` enqueues, without running it. An exception from `calls` ends the
  // capture. The stream must outlive the graph.
  virtual std::shared_ptr<DeviceGraph> capture(const std::function<void()>& calls) = 0;
};

// Why --device cuda is not possible here; empty if it is.
std::string why_no_device();

// Opens the device of rank `local` of this host: its own, or a shared one if there are fewer
// devices than ranks.
std::shared_ptr<DeviceMemory> open_device(int local);

}  // namespace kolo::bench
