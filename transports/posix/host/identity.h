// Names for "this host" and "this process" that two ranks can compare.
#pragma once

#include <string>

namespace kolo::posix {

// What messages call this machine.
std::string host_name();

// Equal for two processes that can share memory and reach each other's unix sockets: same boot of
// the same kernel, same network namespace.
std::string host_identity();

// Equal for two processes whose monotonic clocks say the same: on one host, in one time namespace.
std::string clock_identity();

// Equal within one process only: host, process-id namespace and process id.
std::string process_identity();

}  // namespace kolo::posix
