// The device's reduction kernels of float32 and float64.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::inline v0::device {

const Table kFloatKernels = table_of<float, double>();

}  // namespace kolo::inline v0::device
