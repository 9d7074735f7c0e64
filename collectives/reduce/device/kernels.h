// Reduction kernels for NVIDIA devices, with the operations and the bits of the host's kernels
// (element.h, except for the choice of a NaN). They work on memory that the device can reach: its
// own, mapped memory of a peer, pinned host memory.
//
// A call checks its arguments, launches one kernel into the stream and returns. It does not
// allocate or wait, and can be captured into a CUDA graph. Kernels never wait for a peer. The
// stream's device must be the calling thread's current device; calls may come from any thread.
// std::invalid_argument: the operation is not defined for the type, or an operand is not aligned to
// its elements. kolo::Error: CUDA reports a failure of the launch or of earlier work.
#pragma once

#include <cstddef>

#include "collectives/element.h"
#include "collectives/reduce/device/device.h"

namespace kolo::inline v0::device {

// The operands of one pass over `count` elements. out and copy may be the same memory as local or
// incoming; other overlaps are not allowed. A pass is fastest if all operands have the same offset
// within 16 bytes.
struct Pass {
  void* out = nullptr;
  void* copy = nullptr;  // gets the result too, unless null: to keep it here and send it to a peer
  const void* local = nullptr;
  const void* incoming = nullptr;
  std::size_t count = 0;
};

// out = local op incoming, and copy = out. A `divisor` above 1 (kAverage only) divides the result:
// the last step of an average. `factor` (kScaledSum only) multiplies local first; pass 1 if local
// is scaled already.
void reduce(ElementType type, ReduceOp op, const Pass& pass, Stream stream, int divisor = 1,
            double factor = 1);

// out = local / divisor.
void scale(ElementType type, const Pass& pass, Stream stream, int divisor);

// out = factor * local; floats only.
void multiply(ElementType type, const Pass& pass, Stream stream, double factor);

// Loads the type's kernels onto the current device. Otherwise CUDA loads each kernel at its first
// launch, which waits for all streams of the device, even for those that wait for a peer. So a
// communicator loads kernels before it enqueues its first wait.
void load(ElementType type);

// The same for the driver's own kernels, which copy between device and device, and to and from the
// host. Waits for these copies only.
void load_copies();

}  // namespace kolo::inline v0::device
