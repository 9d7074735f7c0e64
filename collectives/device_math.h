// What a schedule needs of a device beside its channels: copies, reductions and memory, in the
// order of a stream.
//
// Behind it stand the kernels of reduce/device, or, in tests, a played machine. No call waits for
// the device, but allocate and free may. All pointers are of memory that the device reaches.
// Threading: as the channels', one thread at a time.
#pragma once

#include <cstddef>

#include "element.h"

namespace kolo {

class DeviceMath {
 public:
  // The operands of one pass over `count` elements, of which none overlap but those that are one.
  struct Pass {
    void* out = nullptr;
    void* copy = nullptr;  // null, or gets the result too
    const void* left = nullptr;
    const void* right = nullptr;
    std::size_t count = 0;
  };

  DeviceMath() = default;
  DeviceMath(const DeviceMath&) = delete;
  DeviceMath& operator=(const DeviceMath&) = delete;
  virtual ~DeviceMath() = default;

  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;

  // What is done to the operands beside the operation.
  struct Scaling {
    int divisor = 1;    // of the result: an average's
    double factor = 1;  // of the left operand, first: a contribution to a scaled sum
  };

  // out = (factor * left op right) / divisor, and copy = out; with the bits of the host's kernels.
  virtual void reduce(ElementType type, ReduceOp op, const Pass& pass, const Scaling& scaling,
                      void* stream) = 0;

  // out = factor * left: a contribution that goes to where it is added.
  virtual void multiply(ElementType type, const Pass& pass, double factor, void* stream) = 0;

  // Error kUnavailable or kSystem says what is missing.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) noexcept = 0;  // may wait for the device
};

}  // namespace kolo
