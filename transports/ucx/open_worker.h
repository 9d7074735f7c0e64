// Opens what UCX runs on: of what UCX_TLS names, or, where that says nothing, of all that this
// machine has, without those that cannot be opened here.
#pragma once

#include "transports/ucx/library.h"

namespace kolo::ucx {

struct Opened {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
};

// For a job of `size` ranks. Both are the caller's, to be given back in the opposite order. Error
// kUnavailable says what there is in place of what was asked for.
Opened open_worker(const Library& ucp, int size);

// What ucp_context_print_info prints.
std::string resources_of(const Library& ucp, ucp_context_h context);

}  // namespace kolo::ucx
