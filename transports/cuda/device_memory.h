// Device memory with an owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

// One allocation, freed with this object.
class DeviceMemory {
 public:
  DeviceMemory(const Device& device, std::size_t bytes)
      : device_(device), data_(device.allocate(bytes)) {}
  ~DeviceMemory() { device_.free(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  const Device& device_;
  std::byte* const data_;
};

// Memory for received segments that are longer than a slot; the longest piece is in use.
//
// Shorter pieces stay allocated until the end, since a stream may still read them. Each is at least
// twice as long as the one before. They are allocated in the order of the stream: a plain
// allocation may wait for all streams.
class Landings {
 public:
  explicit Landings(const Device& device) : device_(device) {}
  ~Landings() {
    for (std::byte* const memory : made_) device_.free(memory);
  }
  Landings(const Landings&) = delete;
  Landings& operator=(const Landings&) = delete;

  // At least `bytes` for this stream. Error kSystem.
  std::byte* find(std::size_t bytes, Stream stream) {
    if (bytes > bytes_) {
      const std::size_t more = std::max(bytes, 2 * bytes_);
      made_.push_back(device_.allocate(more, stream));
      bytes_ = more;
    }
    return made_.back();
  }

 private:
  const Device& device_;
  std::vector<std::byte*> made_;
  std::size_t bytes_ = 0;
};

}  // namespace kolo::inline v0::cuda
