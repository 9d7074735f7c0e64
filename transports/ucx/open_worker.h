// Opens UCX's context and worker: with the transports of UCX_TLS, or, if that is not set, with all
// that can be opened on this machine.
#pragma once

#include "transports/ucx/library.h"

namespace kolo::inline v0::ucx {

struct Opened {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
};

// Opens both for a job of `size` ranks. The caller closes them in the opposite order. Error
// kUnavailable lists the transports of this machine.
Opened open_worker(const Library& ucp, int size);

// Output of ucp_context_print_info.
std::string resources_of(const Library& ucp, ucp_context_h context);

}  // namespace kolo::inline v0::ucx
