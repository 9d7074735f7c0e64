// Choice of the device that a rank works on.
#pragma once

#include "transports/cuda/driver.h"

namespace kolo::inline v0::cuda {

// Returns `asked` if it is not negative; else KOLO_CUDA_DEVICE; else the device whose context is
// current in this thread; else the local rank (as launchers count the ranks of a host) modulo the
// number of devices. Returns 0 if no device can be used; opening that device reports the reason.
int choose_device(Driver& driver, int asked, int rank);

}  // namespace kolo::inline v0::cuda
