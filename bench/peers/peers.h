// The other libraries in this build that kolo can be measured against: one file and one
// kolo_component line each.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bench/library.h"

namespace kolo::bench {

std::vector<std::string_view> peer_names();

// "gloo", or "gloo:bcube" for one of its algorithms. std::invalid_argument for a name that is not
// in this build.
std::unique_ptr<Library> make_peer(std::string_view name, LibraryRequest request);

// Throws as make_peer would for an unknown name.
void require_peer(std::string_view name);

}  // namespace kolo::bench
