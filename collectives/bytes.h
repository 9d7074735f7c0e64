// Collectives over byte strings of different lengths: names, serialized objects, settings.
//
// Only the owner of a string knows its length. So each call runs two collectives: the lengths, then
// the bytes. Errors and threading are those of the communicator's blocking calls. There are no
// asynchronous forms: the second collective can be issued only when the first is done, which is at
// a different moment on every rank. Operations issued in between would break the common order. To
// overlap such a call with other work, run it in a thread of its own on a duplicate() of the
// communicator. Compare PyTorch's all_gather_object and broadcast_object_list, without the objects.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "communicator.h"

namespace kolo::inline v0 {

using Bytes = std::vector<std::byte>;

// Returns the byte strings of all ranks, by rank, on every rank.
std::vector<Bytes> all_gather_bytes(Communicator& communicator, std::span<const std::byte> mine);

// As all_gather_bytes at the root; returns nothing elsewhere.
std::vector<Bytes> gather_bytes(Communicator& communicator, std::span<const std::byte> mine,
                                int root);

// Returns the root's bytes on every rank; `data` of other ranks is ignored.
Bytes broadcast_bytes(Communicator& communicator, std::span<const std::byte> data, int root);

}  // namespace kolo::inline v0
