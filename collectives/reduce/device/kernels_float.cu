// The device's reduction kernels of float32 and float64.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::device {

const Table kFloatKernels = table_of<float, double>();

}  // namespace kolo::device
