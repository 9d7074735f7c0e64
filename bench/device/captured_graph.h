// kolo's calls captured into a CUDA graph, which every run launches.
//
// A graph is for one problem and its buffers. The first run of another problem captures and
// prepares it, so that time is part of the first call only. Later runs are only the launch, without
// the communicator.
#pragma once

#include <memory>

#include "bench/measure/library.h"

namespace kolo::bench {

// Its name in the table, like the names of --against.
inline constexpr const char* kCaptured = "captured";

// Makes the captured library with its own channels, so that uncaptured calls take their normal
// path. `request.device` must not be null. Collective over the request's ranks. objection() says if
// the transport cannot be captured; its first call is collective.
std::unique_ptr<Library> make_captured(const LibraryRequest& request);

}  // namespace kolo::bench
