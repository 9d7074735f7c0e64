// The device's reduction kernels of integers of 32 and 64 bits.
#include "collectives/reduce/device/kernels.inc"

namespace kolo::device {

const Table kIntKernels = table_of<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>();

}  // namespace kolo::device
