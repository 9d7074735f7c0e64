// Peers: other libraries in this build that kolo is measured against. Each is one file and one
// kolo_component line.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/library.h"
#include "bench/p2p/pipe.h"

namespace kolo::bench {

std::vector<std::string_view> peer_names();

// The names that --against takes: each peer, followed by its algorithms that can be chosen: "gloo",
// "gloo:ring", "gloo:bcube". Some variants exist only for some collectives.
std::vector<std::string> peer_variants();

// Makes the peer "gloo", or "gloo:bcube" for one of its algorithms. Throws std::invalid_argument if
// require_peer would.
std::unique_ptr<Library> make_peer(std::string_view name, LibraryRequest request);

// Makes the peer's pipe for messages between two ranks. std::invalid_argument as above, for
// Collective::kMessage.
std::unique_ptr<Pipe> make_peer_pipe(std::string_view name, const PipeRequest& request);

// Why a library that users may ask for cannot be a peer in any build; empty if it can, or is
// unknown.
std::string_view why_no_peer(std::string_view name);

// Whether it works only on device memory (--device cuda).
bool needs_device(std::string_view name);

// Why a peer in a list is left out: it can be no peer, or not without a device.
std::string why_left_out(std::string_view name);

// Throws std::invalid_argument if the peer is not in this build, or lacks the algorithm for this
// collective.
void require_peer(std::string_view name, Collective collective);

}  // namespace kolo::bench
