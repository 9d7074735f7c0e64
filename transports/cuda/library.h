// The installed CUDA driver: libcuda.so.1, loaded at first use.
#pragma once

#include <memory>
#include <string>

#include "transports/cuda/driver.h"

namespace kolo::inline v0::cuda {

// Returns one shared object per library, since all users must share its list of mappings
// (ipc_mappings.h). Its why_absent() tells what is missing. Safe from any thread.
std::shared_ptr<Driver> installed_driver(const std::string& library = "libcuda.so.1");

}  // namespace kolo::inline v0::cuda
