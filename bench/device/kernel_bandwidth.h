// Bandwidth of a device's reduction kernels, compared with cudaMemcpy between two buffers of the
// same device.
//
// Copy and kernel run in turn in one stream, timed by events, over the same buffers. Before each
// kernel its operand is written anew, so that values stay within the type's range. A kernel's
// bandwidth counts the bytes that it must move: both operands read, the result written once, or
// twice if it is copied. A copy's counts one read and one write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/measure/statistics.h"
#include "collectives/element.h"
#include "collectives/reduce/device/device.h"
#include "collectives/reduce/device/kernels.h"

namespace kolo::bench {

enum class KernelForm {
  kInPlace,  // local = local + incoming
  kApart,    // out = local + incoming
  kTwice,    // local = copy = local + incoming: kept and sent on
};
inline constexpr KernelForm kKernelForms[] = {KernelForm::kInPlace, KernelForm::kApart,
                                              KernelForm::kTwice};

// "in_place", "apart", "twice".
const char* to_string(KernelForm form);

struct KernelResult {
  Quantiles kernel_us;
  Quantiles copy_us;
  std::size_t kernel_bytes = 0;  // bytes moved
  std::size_t copy_bytes = 0;
  std::uint64_t wrong = 0;  // elements of the last result that differ from the host's kernels

  double kernel_gigabytes_per_second() const {
    return gigabytes_per_second(kernel_bytes, kernel_us.median);
  }
  double copy_gigabytes_per_second() const {
    return gigabytes_per_second(copy_bytes, copy_us.median);
  }
};

// The operands of one type and length on the device, for all forms.
class KernelArrays {
 public:
  // `bytes` per operand: whole elements, at least one. kolo::Error if the device lacks memory.
  KernelArrays(ElementType type, std::size_t bytes);

  ElementType type() const { return type_; }
  std::size_t bytes() const { return bytes_; }

  // kolo::Error if the device fails.
  KernelResult measure(KernelForm form, int iterations);

 private:
  device::Pass pass(KernelForm form) const;
  void fill(const device::Buffer& buffer, const std::vector<std::byte>& period);
  double run_kernel_us(KernelForm form);
  double run_copy_us();
  std::uint64_t count_wrong(const void* array);
  std::uint64_t count_wrong(KernelForm form);

  const ElementType type_;
  const std::size_t bytes_;
  std::vector<std::byte> expected_;  // one period of the result
  std::vector<std::byte> fetched_;
  device::Buffer fresh_, mine_, theirs_, other_;
  device::OwnStream stream_;
  device::Event start_, end_;
};

}  // namespace kolo::bench
