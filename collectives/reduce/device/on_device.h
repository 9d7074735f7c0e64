// NVIDIA devices for communicators:
//
//     options.device = kolo::device::on_device();
//     kolo::Communicator world(rank, size, store, options);
//     world.all_reduce({gradient, count, type}, op, {.stream = kolo::DeviceStream{stream}});
#pragma once

#include <memory>

#include "../../rank_device.h"

namespace kolo::inline v0::device {

// The device with this number, as CUDA counts them. The default is chosen as RankDevice::kCurrent
// says. A communicator loads all kernels onto the device when it is made. Error kUnavailable: the
// driver, the device or memory is missing.
std::shared_ptr<const RankDevice> on_device(int number = RankDevice::kCurrent);

}  // namespace kolo::inline v0::device
