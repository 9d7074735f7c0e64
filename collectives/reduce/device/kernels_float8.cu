// The device's reduction kernels of the 8-bit floats.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::inline v0::device {

const Table kFloat8Kernels = table_of<Float8E4M3, Float8E5M2>();

}  // namespace kolo::inline v0::device
