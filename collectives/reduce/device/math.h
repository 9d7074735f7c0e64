// DeviceMath (device_math.h) of an NVIDIA device, over the kernels of this folder.
//
// Failures are those of kernels.h and device.h.
#pragma once

#include <memory>
#include <vector>

#include "collectives/device_math.h"
#include "collectives/reduce/device/device.h"

namespace kolo::inline v0::device {

class KernelMath final : public DeviceMath {
 public:
  // Loads the kernels of `types` and the driver's copies onto this device now, so that a first
  // launch does not wait later (see load() in kernels.h). By default everything uses the calling
  // thread's current device.
  explicit KernelMath(const std::vector<ElementType>& types, int number = kCurrentDevice);

  void copy(void* to, const void* from, std::size_t bytes, void* stream) override;
  void reduce(ElementType type, ReduceOp op, const Pass& pass, const Scaling& scaling,
              void* stream) override;
  void multiply(ElementType type, const Pass& pass, double factor, void* stream) override;
  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* memory) noexcept override;

 private:
  const int number_;
  std::vector<Buffer> buffers_;
};

}  // namespace kolo::inline v0::device
