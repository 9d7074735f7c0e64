// Builds without CUDA have no devices.
#include "bench/device/memory.h"
#include "transports/error.h"

namespace kolo::bench {

std::string why_no_device() {
  return "this build has no CUDA: nvcc was not found when it was configured (cmake/README.md)";
}

std::shared_ptr<DeviceMemory> open_device(int) {
  throw Error(ErrorCode::kUnavailable, kNoPeer, why_no_device());
}

}  // namespace kolo::bench
