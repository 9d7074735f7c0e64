// The device's reduction kernels of integers of 8 and 16 bits.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::inline v0::device {

const Table kShortIntKernels = table_of<std::int8_t, std::int16_t, std::uint8_t, std::uint16_t>();

}  // namespace kolo::inline v0::device
