// The device's reduction kernels of float16 and bfloat16.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::inline v0::device {

const Table kFloat16Kernels = table_of<Float16, BFloat16>();

}  // namespace kolo::inline v0::device
