// The device of a rank, for calls on its streams.
//
// On builds with CUDA, kolo::device::on_device() of the library kolo::device returns one for an
// NVIDIA device. Programs with other kernels, and tests with a simulated device, fill in the
// structure themselves.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device_math.h"

namespace kolo::inline v0 {

namespace cuda {
class Driver;
}

struct RankDevice {
  // Selects the device in this order: KOLO_CUDA_DEVICE; the current device of the thread that makes
  // the communicator, if a context is current; device LOCAL_RANK modulo the number of devices.
  static constexpr int kCurrent = -1;

  int number = kCurrent;                 // the number of the device in this process
  std::shared_ptr<cuda::Driver> driver;  // null: the installed driver
  // Makes the kernels for the device of that number; called once per communicator.
  std::function<std::unique_ptr<DeviceMath>(int number)> make_math;
  std::string process = {};  // equal for ranks of one process; empty: detected
  // Version of the CUDA runtime that built the kernels: 13000 for 13.0. An older driver is refused,
  // with an error that names both versions. 0: no runtime.
  int runtime_version = 0;
};

}  // namespace kolo::inline v0
