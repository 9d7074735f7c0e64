// The other libraries in this build that kolo can be measured against: one file and one
// kolo_component line each.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/library.h"
#include "bench/p2p/pipe.h"

namespace kolo::bench {

std::vector<std::string_view> peer_names();

// What --against takes: each peer, and behind it those of its algorithms that can be asked for:
// "gloo", "gloo:ring", "gloo:bcube". A variant may be of some collectives alone.
std::vector<std::string> peer_variants();

// "gloo", or "gloo:bcube" for one of its algorithms. std::invalid_argument where
// require_peer would throw.
std::unique_ptr<Library> make_peer(std::string_view name, LibraryRequest request);

// Its messages between two ranks. std::invalid_argument as above, for Collective::kMessage.
std::unique_ptr<Pipe> make_peer_pipe(std::string_view name, const PipeRequest& request);

// Why a library that is often asked for cannot be a peer at all; empty: it can, or is not known.
std::string_view why_no_peer(std::string_view name);

// Whether it works on the memory of devices alone, as --device cuda has it.
bool needs_device(std::string_view name);

// Why one of several that were asked for is left out: it can be no peer, or not without a device.
std::string why_left_out(std::string_view name);

// std::invalid_argument for a name that is not in this build, and for an algorithm that it does not
// have for this collective.
void require_peer(std::string_view name, Collective collective);

}  // namespace kolo::bench
