#include "collectives/reduce/device/device.h"

#include <cuda_runtime.h>

#include <array>
#include <cstdio>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0::device {
namespace {

// Text of a CUDA version number: "13.0" for 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string gibibytes(std::size_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", static_cast<double>(bytes) / (1u << 30));
  return text.data();
}

std::string find_why_unusable() {
  int driver = 0, devices = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return "no NVIDIA driver is loaded here (libcuda.so.1): install one, or pass the devices into "
           "the "
           "container";
  }
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is for CUDA " + version_text(driver) + ", older than the runtime " +
           version_text(runtime_version()) +
           ": install a newer driver, or build with an older nvcc";
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && devices == 0)) {
    return "the NVIDIA driver finds no device: check nvidia-smi and CUDA_VISIBLE_DEVICES";
  }
  if (error != cudaSuccess) return std::string("CUDA reports: ") + cudaGetErrorString(error);
  return "";
}

bool is_lack(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return true;
    default:
      return false;
  }
}

// The remedy for an error; empty if the text of the error is enough.
const char* advice(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
      return "; this build is for other devices: configure with CMAKE_CUDA_ARCHITECTURES=native";
    case cudaErrorDevicesUnavailable:
      return "; another process uses the device exclusively (nvidia-smi: compute mode)";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
      return "; this process has lost the device's memory and must restart (compute-sanitizer "
             "shows the faulty access)";
    default:
      return "";
  }
}

}  // namespace

const std::string& why_unusable() {
  static const std::string why = find_why_unusable();
  return why;
}

int runtime_version() {
  int version = 0;
  return cudaRuntimeGetVersion(&version) == cudaSuccess ? version : 0;
}

int count() {
  int devices = 0;
  return why_unusable().empty() && cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

void use(int number) {
  if (!why_unusable().empty()) throw Error(ErrorCode::kUnavailable, kNoPeer, why_unusable());
  check(cudaSetDevice(number), "using device " + std::to_string(number));
}

Pinned::Pinned(void* memory, std::size_t bytes) : memory_(memory) {
  check(cudaHostRegister(memory, bytes, cudaHostRegisterDefault),
        "pinning " + std::to_string(bytes) + " bytes of the host's memory (see ulimit -l)");
}

Pinned::~Pinned() { cudaHostUnregister(memory_); }

void check(int error, const std::string& what) {
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next call does not report it
  throw Error(
      is_lack(code) ? ErrorCode::kUnavailable : ErrorCode::kSystem, kNoPeer,
      what + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")" + advice(code));
}

std::string description() {
  if (!why_unusable().empty()) return why_unusable();
  int device = 0, driver = 0, runtime = 0;
  check(cudaGetDevice(&device), "asking for the current device");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties");
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " + gibibytes(properties.totalGlobalMem) +
         ", driver for CUDA " + version_text(driver) + ", runtime " + version_text(runtime);
}

ChosenDevice::ChosenDevice(int number) {
  int current = kCurrentDevice;
  if (number == kCurrentDevice || cudaGetDevice(&current) != cudaSuccess || current == number)
    return;
  if (cudaSetDevice(number) == cudaSuccess) before_ = current;
}

ChosenDevice::~ChosenDevice() {
  if (before_ != kCurrentDevice) cudaSetDevice(before_);
}

MemoryLeft memory_left() {
  MemoryLeft left;
  check(cudaMemGetInfo(&left.free_bytes, &left.total_bytes), "asking for the device's free memory");
  return left;
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    const MemoryLeft left = memory_left();
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                "out of device memory: " + std::to_string(bytes) + " bytes (" + gibibytes(bytes) +
                    ") requested, " + std::to_string(left.free_bytes) + " (" +
                    gibibytes(left.free_bytes) + ") of " + gibibytes(left.total_bytes) +
                    " free; use less, or see which process uses it (nvidia-smi)");
  }
  check(error, "allocating " + std::to_string(bytes) + " bytes of device memory");
  data_ = static_cast<std::byte*>(memory);
}

Buffer::~Buffer() {
  if (data_ != nullptr) cudaFree(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

OwnStream::OwnStream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
}

OwnStream::~OwnStream() { cudaStreamDestroy(stream_); }

Event::Event() { check(cudaEventCreate(&event_), "creating an event"); }

Event::~Event() { cudaEventDestroy(event_); }

void Event::record(Stream stream) { check(cudaEventRecord(event_, stream), "recording an event"); }

double Event::microseconds_since(const Event& start) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "reading an event's time");
  return static_cast<double>(milliseconds) * 1000;
}

Graph::Graph(Stream stream, const std::function<void()>& calls) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a capture");
  try {
    calls();
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "ending a capture");
  const cudaError_t error = cudaGraphInstantiate(&ready_, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "instantiating a graph");
}

Graph::~Graph() { cudaGraphExecDestroy(ready_); }

void Graph::launch(Stream stream) { check(cudaGraphLaunch(ready_, stream), "launching a graph"); }

void copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
        "copying " + std::to_string(bytes) + " bytes to or from the device");
}

void wait(Stream stream) { check(cudaStreamSynchronize(stream), "waiting for a stream"); }

}  // namespace kolo::inline v0::device
