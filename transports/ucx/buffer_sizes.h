// Sizes of UCX's receive buffers, set unless the user sets them.
//
// A message that fits into one buffer arrives in one piece: in a shared memory queue it is read in
// place, from TCP it is copied once. A longer message arrives in pieces (of 8 KiB by default). UCX
// gathers them in memory that it allocates, and over TCP each piece costs a system call.
#pragma once

#include <ucp/api/ucp.h>
#include <cstddef>
#include <string>
#include <vector>

#include "transports/ucx/library.h"

namespace kolo::inline v0::ucx {

// Segments up to these sizes arrive in one piece.
inline constexpr std::size_t kQueueBufferBytes = 16 * 1024;
inline constexpr std::size_t kTcpBufferBytes = 256 * 1024;

// Sets in `config` the sizes for `resources`, the transports that a rank may use. The user's UCX_*
// variables take precedence. True if anything was set.
bool set_buffer_sizes(const Library& ucp, ucp_config_t* config,
                      const std::vector<std::string>& resources);

}  // namespace kolo::inline v0::ucx
