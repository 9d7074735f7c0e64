// A device's reduction kernels against its own copy engine: how near they come to the bandwidth
// that cudaMemcpy has between two buffers of the same device.
//
// Copy and kernel take turns in one stream, between events, over the same buffers; before every
// kernel the operand is written anew, so that values do not grow into what a type cannot hold. A
// kernel's bandwidth counts the bytes that it must move: both operands read, the result written
// once, or twice where it is copied. A copy's are one read and one write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/measure/statistics.h"
#include "collectives/element.h"

namespace kolo::bench {

enum class KernelForm {
  kInPlace,  // local = local + incoming
  kApart,    // out = local + incoming
  kTwice,    // local = copy = local + incoming: what is kept and goes on
};
inline constexpr KernelForm kKernelForms[] = {KernelForm::kInPlace, KernelForm::kApart,
                                              KernelForm::kTwice};

// "in_place", "apart", "twice".
const char* to_string(KernelForm form);

struct KernelRequest {
  ElementType type = ElementType::kFloat32;
  KernelForm form = KernelForm::kInPlace;
  std::size_t bytes = 0;  // of an operand
  int iterations = 21;
};

struct KernelResult {
  Quantiles kernel_us;
  Quantiles copy_us;
  std::size_t kernel_bytes = 0;  // moved
  std::size_t copy_bytes = 0;
  std::uint64_t wrong = 0;  // elements of the last result that the host's kernels have otherwise

  double kernel_gigabytes_per_second() const {
    return gigabytes_per_second(kernel_bytes, kernel_us.median);
  }
  double copy_gigabytes_per_second() const {
    return gigabytes_per_second(copy_bytes, copy_us.median);
  }
};

// kolo::Error where the device has not the memory, or fails.
KernelResult measure_kernel(const KernelRequest& contest);

}  // namespace kolo::bench
