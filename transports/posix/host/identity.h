// Identities of host and process, which two ranks can compare.
#pragma once

#include <string>

namespace kolo::inline v0::posix {

// Host name for messages.
std::string host_name();

// The same with its domain, if the resolver knows it: "train-0.kolo.default.svc.cluster.local".
std::string full_host_name();

// Equal for two processes that can share memory and reach each other's unix sockets: same boot of
// the same kernel, same network namespace.
std::string host_identity();

// Equal for two processes with the same monotonic clock: one host, one time namespace.
std::string clock_identity();

// Equal within one process only: host, process-id namespace and process id.
std::string process_identity();

}  // namespace kolo::inline v0::posix
