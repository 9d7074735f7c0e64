// An anonymous file, for memory that other processes open through /proc/PID/fd.
#pragma once

#include <cstddef>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::bench {

// Makes a file of `bytes` zeros: a memfd, or an unlinked temporary file if the kernel offers no
// memfd. Error kSystem says what it was for and what was tried.
posix::Descriptor make_memory_file(std::size_t bytes, const std::string& what_for);

}  // namespace kolo::bench
