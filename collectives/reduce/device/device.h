// CUDA for tests, benchmarks, examples and kernel launches, without the CUDA headers: the presence
// of a device, memory on it, streams and events.
//
// Everything refers to the current device of the calling thread: device 0 unless the program
// selected another. Failures are kolo::Error with CUDA's name of the error: kUnavailable if the
// machine lacks a driver, a device or memory; kSystem otherwise.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

// CUDA's own names of the types behind cudaStream_t, cudaEvent_t and cudaGraphExec_t.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace kolo::inline v0::device {

using Stream = CUstream_st*;

// Empty if there is a usable device. Otherwise the reason and the remedy: no driver, a driver older
// than the runtime, or no device. Determined once per process.
const std::string& why_unusable();

// Version of the CUDA runtime: 13000 for 13.0.
int runtime_version();

int count();

// Makes this device the current one of the calling thread.
void use(int number);

// "NVIDIA H200, compute capability 9.0, 139.8 GiB, driver 580.82 for CUDA 13.0, runtime 13.0".
std::string description();

// Scoped choice of the calling thread's current device; kCurrentDevice changes nothing. If the
// choice fails, the calls that follow fail.
inline constexpr int kCurrentDevice = -1;
class ChosenDevice {
 public:
  explicit ChosenDevice(int number);
  ~ChosenDevice();
  ChosenDevice(const ChosenDevice&) = delete;
  ChosenDevice& operator=(const ChosenDevice&) = delete;

 private:
  int before_ = kCurrentDevice;
};

struct MemoryLeft {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};
MemoryLeft memory_left();

// Memory of a device, aligned to 256 bytes. Freeing it waits for the device.
class Buffer {
 public:
  Buffer() = default;
  // If there is not enough memory, the error states the requested and the free bytes.
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Pinned host memory: pages stay in place while this object lives, so that copies run at full
// speed.
class Pinned {
 public:
  Pinned(void* memory, std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  void* memory_;
};

// A stream that does not synchronize with the default stream.
class OwnStream {
 public:
  OwnStream();
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  operator Stream() const { return stream_; }

 private:
  Stream stream_ = nullptr;
};

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream stream);
  // Both events must be recorded and complete.
  double microseconds_since(const Event& start) const;

 private:
  CUevent_st* event_ = nullptr;
};

// A CUDA graph of the work that `calls` enqueues. The work runs at each launch, any number of
// times.
class Graph {
 public:
  // Captures calls of this thread only; other threads may use the device meanwhile. An exception in
  // `calls` ends the capture.
  Graph(Stream stream, const std::function<void()>& calls);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(Stream stream);

 private:
  CUgraphExec_st* ready_ = nullptr;
};

// Copies in stream order, between any two of host and device memory.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);

// Blocks the host until all work of the stream is done; throws its failure.
void wait(Stream stream);

// Throws the error that a CUDA call returned, if any. `what` describes the purpose of the call.
void check(int error, const std::string& what);

}  // namespace kolo::inline v0::device
