// How long UCX's buffers are: what is said to it of them where the user says nothing.
//
// A message that fits into one of its buffers comes in one piece: through a queue in shared memory
// it is read where it lies, from tcp it is copied once. A longer one comes in many (of 8 KiB,
// unless more is asked for), which UCX gathers in memory that it asks the system for, and which
// costs a call of the kernel's each over tcp.
#pragma once

#include <ucp/api/ucp.h>
#include <cstddef>
#include <string>
#include <vector>

#include "transports/ucx/library.h"

namespace kolo::ucx {

// Segments up to so many bytes go in one piece.
inline constexpr std::size_t kQueueBufferBytes = 16 * 1024;
inline constexpr std::size_t kTcpBufferBytes = 256 * 1024;

// Sets in `config` what concerns `resources`, the transports that a rank could take; true where
// that was anything. The user's UCX_* variables come first.
bool set_buffer_sizes(const Library& ucp, ucp_config_t* config,
                      const std::vector<std::string>& resources);

}  // namespace kolo::ucx
