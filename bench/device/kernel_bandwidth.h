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

#include "bench/measure/statistics.h"
#include "collectives/element.h"

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

struct KernelRequest {
  ElementType type = ElementType::kFloat32;
  KernelForm form = KernelForm::kInPlace;
  std::size_t bytes = 0;  // per operand
  int iterations = 21;
};

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

// kolo::Error if the device lacks memory, or fails.
KernelResult measure_kernel(const KernelRequest& contest);

}  // namespace kolo::bench
