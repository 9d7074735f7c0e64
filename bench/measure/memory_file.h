// A file without a name, for memory that other processes open through /proc/PID/fd.
#pragma once

#include <cstddef>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::bench {

// `bytes` zeros: a memfd, or a file in the folder for temporary files where the kernel has none to
// give. Error kSystem says what it was for and what was tried.
posix::Descriptor make_memory_file(std::size_t bytes, const std::string& what_for);

}  // namespace kolo::bench
