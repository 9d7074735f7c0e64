// What tests, benchmarks, examples and the launches of kernels need of CUDA, without its headers:
// whether there is a device, memory on it, streams and events.
//
// All of it is of the calling thread's current device, which is device 0 unless somebody chose
// another. Failures are kolo::Error with CUDA's name for them: kUnavailable where the machine lacks
// what was asked for (a driver, a device, memory), kSystem otherwise.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

// CUDA's own names of what cudaStream_t, cudaEvent_t and cudaGraphExec_t point to.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace kolo::device {

using Stream = CUstream_st*;

// Empty where there is a device that can compute; otherwise why not, and what to do: no driver, one
// that is older than the runtime, no device. The answer is the process's, asked for once.
const std::string& why_unusable();

// 13000 for 13.0.
int runtime_version();

int count();

// Makes it the calling thread's current device.
void use(int number);

// "NVIDIA H200, compute capability 9.0, 139.8 GiB, driver 580.82 for CUDA 13.0, runtime 13.0".
std::string description();

// Makes a device the calling thread's current one for as long as it lives; kCurrentDevice leaves it
// as it is. What cannot be chosen fails in the calls that follow.
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

// Memory of a device, aligned to 256 bytes. Who frees it waits for the device.
class Buffer {
 public:
  Buffer() = default;
  // What is missing is said with what was asked for and what is free.
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

// Memory of the host that stays where it is meanwhile, so that copies go at full speed.
class Pinned {
 public:
  Pinned(void* memory, std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  void* memory_;
};

// A stream that does not wait for the default one.
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
  // Both must be recorded and waited for.
  double microseconds_since(const Event& start) const;

 private:
  CUevent_st* event_ = nullptr;
};

// What `calls` gives to a stream, none of which runs until it is launched, as often as wanted.
class Graph {
 public:
  // Of this thread alone: what others do meanwhile is no part of it. What `calls` throws ends the
  // capture.
  Graph(Stream stream, const std::function<void()>& calls);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(Stream stream);

 private:
  CUgraphExec_st* ready_ = nullptr;
};

// In the order of the stream, between any two of the host's and the device's memory.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);

// The host waits until all that was given to the stream is done; what went wrong in it is thrown.
void wait(Stream stream);

// Throws what a call of CUDA's has returned, unless it was a success: `what` names the call by its
// purpose.
void check(int error, const std::string& what);

}  // namespace kolo::device
