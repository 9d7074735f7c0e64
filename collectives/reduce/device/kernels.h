// The reduction kernels of NVIDIA's devices: the operations and the bits of the host's (element.h,
// NaNs apart), on memory that the device reaches: its own, a peer's that is mapped, pinned host
// memory.
//
// A call checks its arguments, launches one kernel into the stream and returns; it allocates
// nothing, waits for nothing, and can be captured into a CUDA graph. Kernels never wait for
// anybody. The stream's device must be the calling thread's current one; calls may come from any
// thread. std::invalid_argument: an operation that the type has not, an operand that is not aligned
// to its elements. kolo::Error: what CUDA says of the launch, or of work before it.
#pragma once

#include <cstddef>

#include "collectives/element.h"
#include "collectives/reduce/device/device.h"

namespace kolo::device {

// The operands of one pass over `count` elements. out and copy may be local or incoming; other
// overlaps are not allowed. It is the quickest where all lie alike within 16 bytes.
struct Pass {
  void* out = nullptr;
  void* copy = nullptr;  // null, or gets the result too: what is kept here and goes on to a peer
  const void* local = nullptr;
  const void* incoming = nullptr;
  std::size_t count = 0;
};

// out = local op incoming, and copy = out. Divisor: above 1, of kAverage, what the result is
// divided by, as the last step of an average. Factor: of kScaledSum, what local is multiplied by
// first; 1 where it has been.
void reduce(ElementType type, ReduceOp op, const Pass& pass, Stream stream, int divisor = 1,
            double factor = 1);

// out = local / divisor.
void scale(ElementType type, const Pass& pass, Stream stream, int divisor);

// out = factor * local; of floats.
void multiply(ElementType type, const Pass& pass, Stream stream, double factor);

// Brings the type's kernels to the current device, which otherwise happens at the first launch of
// each: and that waits for all streams of the device, even those that wait for a peer. So a
// communicator loads before it enqueues its first wait.
void load(ElementType type);

}  // namespace kolo::device
