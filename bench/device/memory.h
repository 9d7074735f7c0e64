// A device, as a benchmark needs it: memory, copies, one stream of a rank's own.
//
// Behind it stand one of NVIDIA's (cuda_memory.cpp, where the build has CUDA) or, in tests, plain
// memory. Threading: the thread of the rank that opened it. Failures are kolo::Error.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "collectives/rank_device.h"

namespace kolo::bench {

// Work that was captured from a rank's stream.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;
  virtual ~DeviceGraph() = default;

  // Once more, in the order of that stream.
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
  // What a communicator takes for calls on the stream.
  virtual std::shared_ptr<const RankDevice> rank_device() const = 0;
  // Whose devices there are, and this rank's among them.
  virtual int number() const = 0;
  virtual int count() const = 0;
  // The same device, with another stream.
  virtual std::shared_ptr<DeviceMemory> beside() const = 0;

  // The runtime's handle. It does not wait for the default stream.
  virtual void* stream() const = 0;
  virtual std::shared_ptr<std::byte[]> allocate(std::size_t bytes) = 0;
  // Host memory that stays where it is while the result lives, so that copies go at full speed.
  virtual std::shared_ptr<void> pin(std::span<std::byte> memory) = 0;
  // Between any two memories of the host and the device, in the order of the stream.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  // The host waits for all that the stream was given.
  virtual void wait() = 0;
  // What `calls` gives to the stream, which runs none of it. What they throw ends the capture. The
  // stream outlives the graph.
  virtual std::shared_ptr<DeviceGraph> capture(const std::function<void()>& calls) = 0;
};

// Why --device cuda is not possible here; empty where it is.
std::string why_no_device();

// The device of the rank `local` of this host: its own, or one that ranks share where there are
// fewer.
std::shared_ptr<DeviceMemory> open_device(int local);

}  // namespace kolo::bench
