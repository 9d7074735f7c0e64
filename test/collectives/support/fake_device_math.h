// Fake device math: the host's kernels, run in the order of a fake stream.
#pragma once

#include <memory>
#include <string>

#include "collectives/device_math.h"
#include "test/transports/cuda/fake_driver.h"

namespace kolo::test {

class FakeDeviceMath final : public DeviceMath {
 public:
  // `machine` belongs to the driver. It runs before memory is freed, as a device does. Loads all
  // kernels at once, as device::KernelMath does.
  FakeDeviceMath(FakeMachine& machine, std::shared_ptr<FakeDriver> driver);

  void copy(void* to, const void* from, std::size_t bytes, void* stream) override;
  void reduce(ElementType type, ReduceOp op, const Pass& pass, const Scaling& scaling,
              void* stream) override;
  void multiply(ElementType type, const Pass& pass, double factor, void* stream) override;
  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* memory) noexcept override;

  // Counts the call of a runtime function, which a test may let fail. Throws kSystem if it fails.
  void begin(const std::string& function);

 private:
  FakeMachine& machine_;
  std::shared_ptr<FakeDriver> driver_;
};

}  // namespace kolo::test
