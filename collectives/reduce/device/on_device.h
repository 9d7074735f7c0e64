// NVIDIA's devices for communicators:
//
//     options.device = kolo::device::on_device();
//     kolo::Communicator world(rank, size, store, options);
//     world.all_reduce(gradient, gradient, count, type, op, {.stream =
//     kolo::DeviceStream{stream}});
#pragma once

#include <memory>

#include "../../rank_device.h"

namespace kolo::device {

// The device of this number, as CUDA counts them; by default the current one, or the rank's own.
// Its communicator brings all kernels there when it is made; Error kUnavailable says what is
// missing.
std::shared_ptr<const RankDevice> on_device(int number = RankDevice::kCurrent);

}  // namespace kolo::device
