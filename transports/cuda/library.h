// The driver that is installed here: libcuda.so.1, loaded when it is first asked for.
#pragma once

#include <memory>
#include <string>

#include "transports/cuda/driver.h"

namespace kolo::cuda {

// One object for a library while somebody has it: what is open in this process must be known to all
// that open (openings.h). Its why_absent() says what is missing. From any thread.
std::shared_ptr<Driver> installed_driver(const std::string& library = "libcuda.so.1");

}  // namespace kolo::cuda
