// Store of torch.distributed as the store where kolo's ranks meet. No second port is opened.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/c/kolo_store.h"

namespace kolo_torch {

// A connection to the same store that no other thread uses. torch 2.6 has none: the same object.
c10::intrusive_ptr<c10d::Store> own_connection(const c10::intrusive_ptr<c10d::Store>& store);

// Uses a connection of its own, as kolo calls it from several threads. Free with
// kolo_store_free().
kolo_job_store* open_torch_store(const c10::intrusive_ptr<c10d::Store>& store);

}  // namespace kolo_torch
