// Byte strings whose lengths only their owners know: names, serialized objects, settings.
//
// Each takes two collectives: the lengths, then the bytes. Errors and threading are those of the
// communicator's blocking calls. There are no asynchronous forms: the second collective can be
// issued only once the first has told its lengths, which is at another moment on every rank, and
// what a rank issues in between would come before it here and after it there. Who wants to overlap
// them with other work calls them from a thread, on a duplicate() of the communicator. What
// PyTorch's all_gather_object and broadcast_object_list are made of, without the objects.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "communicator.h"

namespace kolo {

using Bytes = std::vector<std::byte>;

// What every rank gave, by rank, on every rank.
std::vector<Bytes> all_gather_bytes(Communicator& communicator, std::span<const std::byte> mine);

// The same at the root; nothing elsewhere.
std::vector<Bytes> gather_bytes(Communicator& communicator, std::span<const std::byte> mine,
                                int root);

// The root's, on every rank; what the others pass does not matter.
Bytes broadcast_bytes(Communicator& communicator, std::span<const std::byte> data, int root);

}  // namespace kolo
