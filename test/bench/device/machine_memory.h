// Device memory on the fake machine of the CUDA driver tests, for kolo's own calls on streams.
#pragma once

#include <memory>
#include <vector>

#include "bench/device/memory.h"
#include "test/collectives/support/stream_ranks.h"

namespace kolo::bench {

// Memory of one rank, which is a process of its own on that machine. Allocations are freed at its
// end, after the end of all communicators.
class MachineMemory final : public DeviceMemory {
 public:
  explicit MachineMemory(test::FakeMachine& machine);
  MachineMemory(test::FakeMachine& machine, std::shared_ptr<test::FakeDriver> driver);
  ~MachineMemory() override;

  std::string describe() const override { return "a played device"; }
  std::shared_ptr<const RankDevice> rank_device() const override;
  int number() const override { return 0; }
  int count() const override { return 1; }
  std::shared_ptr<DeviceMemory> beside() const override;
  void* stream() const override { return stream_; }
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override;
  std::shared_ptr<void> pin(std::span<std::byte> memory) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  // Throws after a minute.
  void wait() override;
  std::shared_ptr<DeviceGraph> capture(const std::function<void()>& calls) override;

 private:
  bool holds(const void* pointer) const;

  test::FakeMachine& machine_;
  std::shared_ptr<test::FakeDriver> driver_;
  cuda::Stream stream_;
  std::vector<std::span<std::byte>> given_;
};

}  // namespace kolo::bench
