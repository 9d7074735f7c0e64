// The driver that is installed here: libcuda.so.1, loaded when it is first asked for.
#pragma once

#include <memory>
#include <string>

#include "transports/cuda/driver.h"

namespace kolo::cuda {

// Loads once per call; the library stays. Its why_absent() says what is missing.
std::shared_ptr<Driver> installed_driver(const std::string& library = "libcuda.so.1");

}  // namespace kolo::cuda
