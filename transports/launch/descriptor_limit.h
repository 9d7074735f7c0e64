// Limit of this process's descriptors, checked before ranks are started: a rank whose connection to
// the store is not accepted would get no error.
#pragma once

#include <span>
#include <string>

#include "transports/launch/launch.h"

namespace kolo::inline v0::launch {

// The reason why the limit is too low to launch these jobs; empty if it suffices. `with_store`: all
// ranks connect to the launcher's store.
std::string why_too_few_descriptors(std::span<const LaunchRequest> requests, bool with_store);

}  // namespace kolo::inline v0::launch
