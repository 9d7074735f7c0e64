// The device's reduction kernels of integers of 32 and 64 bits.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::inline v0::device {

const Table kIntKernels = table_of<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>();

}  // namespace kolo::inline v0::device
