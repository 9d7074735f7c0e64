// The device that a rank brings to its communicators, for calls on its streams.
//
// kolo::device::on_device(), of the library kolo::device, gives one of NVIDIA's (on builds with
// CUDA). Whoever has other kernels, or plays a device, fills it in.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device_math.h"

namespace kolo {

namespace cuda {
class Driver;
}

struct RankDevice {
  // That of KOLO_CUDA_DEVICE; else the one whose context is current in the thread that makes the
  // communicator; else the rank's own among those there are, as launchers count ranks (LOCAL_RANK).
  static constexpr int kCurrent = -1;

  int number = kCurrent;                 // as this process counts them
  std::shared_ptr<cuda::Driver> driver;  // null: the installed one
  // Kernels for the device of that number; called once for every communicator.
  std::function<std::unique_ptr<DeviceMath>(int number)> make_math;
  std::string process = {};  // equal for ranks of one process; empty: found out
  // Of the CUDA runtime that the kernels were built with, 13000 for 13.0: an older driver is
  // refused with both versions. 0: there is none.
  int runtime_version = 0;
};

}  // namespace kolo
