// Which device a rank works on.
#pragma once

#include "transports/cuda/driver.h"

namespace kolo::cuda {

// `asked`; where it is less than 0, KOLO_CUDA_DEVICE; else the one whose context is current in this
// thread; else the rank's own among those there are, as launchers count the ranks of a host.
// 0 where no device can be used: who opens that one learns why.
int choose_device(Driver& driver, int asked, int rank);

}  // namespace kolo::cuda
