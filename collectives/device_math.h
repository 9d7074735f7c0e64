// Operations of a device that a schedule needs beside its channels: copies, reductions and memory,
// in stream order.
//
// Implemented by the kernels of reduce/device, and in tests by a simulated device. Only allocate
// and free may wait for the device. All pointers are to memory that the device can reach.
// Threading: one thread at a time, as for channels.
#pragma once

#include <cstddef>

#include "element.h"

namespace kolo::inline v0 {

class DeviceMath {
 public:
  // Operands of one pass over `count` elements. Two operands are identical or do not overlap.
  struct Pass {
    void* out = nullptr;
    void* copy = nullptr;  // gets the result too, unless null
    const void* left = nullptr;
    const void* right = nullptr;
    std::size_t count = 0;
  };

  DeviceMath() = default;
  DeviceMath(const DeviceMath&) = delete;
  DeviceMath& operator=(const DeviceMath&) = delete;
  virtual ~DeviceMath() = default;

  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;

  // Scaling of the operands, beside the operation.
  struct Scaling {
    int divisor = 1;    // divides the result: the last step of an average
    double factor = 1;  // multiplies the left operand first: a contribution to a scaled sum
  };

  // out = (factor * left op right) / divisor, and copy = out. Gives the same bits as the host's
  // kernels.
  virtual void reduce(ElementType type, ReduceOp op, const Pass& pass, const Scaling& scaling,
                      void* stream) = 0;

  // out = factor * left: scales a contribution before it is sent.
  virtual void multiply(ElementType type, const Pass& pass, double factor, void* stream) = 0;

  // Error kUnavailable or kSystem: what is missing.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) noexcept = 0;  // may wait for the device
};

}  // namespace kolo::inline v0
