// kolo's calls captured into a graph of the device's, which every run launches once more.
//
// A graph is of one problem and its buffers: the first run of another captures it and makes it
// ready, so what that takes is in the time of the first call, and in no other. In between a run is
// the launch alone, which asks nothing of the communicator.
#pragma once

#include <memory>

#include "bench/measure/library.h"

namespace kolo::bench {

// What --captured calls it, as --against calls peers.
inline constexpr const char* kCaptured = "captured";

// Over channels of its own, so that calls which are not captured take the way that they take
// without it. `request.device` is not null; collective over the request's ranks. objection() says
// so where the transport cannot be captured, and is collective the first time.
std::unique_ptr<Library> make_captured(const LibraryRequest& request);

}  // namespace kolo::bench
