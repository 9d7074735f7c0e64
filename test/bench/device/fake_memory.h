// Fake device memory: plain memory, for measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/device/memory.h"
#include "transports/error.h"

namespace kolo::bench {

// Copies run when the stream is waited for. A caller that does not wait finds old bytes.
class FakeMemory final : public DeviceMemory {
 public:
  std::string describe() const override { return "a played device"; }
  std::shared_ptr<const RankDevice> rank_device() const override { return nullptr; }
  int number() const override { return 0; }
  int count() const override { return devices; }
  std::shared_ptr<DeviceMemory> beside() const override { return std::make_shared<FakeMemory>(); }
  void* stream() const override { return nullptr; }
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    if (bytes > room) throw Error(ErrorCode::kSystem, kNoPeer, "no room");
    auto memory = std::make_shared<std::byte[]>(bytes);
    given_.push_back({memory.get(), bytes});
    return memory;
  }
  std::shared_ptr<void> pin(std::span<std::byte> memory) override {
    ++pins;
    return {memory.data(), [this](void*) { --pins; }};
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    copies_.push_back({to, from, bytes});
    copied_bytes += bytes;
  }
  void wait() override {
    ++waits;
    for (const Copy& copy : copies_) std::memcpy(copy.to, copy.from, copy.bytes);
    copies_.clear();
  }
  std::shared_ptr<DeviceGraph> capture(const std::function<void()>&) override {
    throw Error(ErrorCode::kUnavailable, kNoPeer, "plain memory has no graphs");
  }
  bool holds(const void* pointer) const {
    return std::ranges::any_of(given_, [pointer](std::span<const std::byte> memory) {
      return pointer >= memory.data() && pointer < memory.data() + memory.size();
    });
  }

  int devices = 1;
  std::size_t room = SIZE_MAX;  // the limit of one allocation
  int pins = 0;
  int waits = 0;
  std::size_t copied_bytes = 0;

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> copies_;
  std::vector<std::span<const std::byte>> given_;
};

}  // namespace kolo::bench
