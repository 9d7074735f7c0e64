// A plain transport over a table of a transport from outside, for the adapter.
#pragma once

#include <memory>

#include "transports/base/adapter.h"
#include "transports/plugin/load.h"

namespace kolo::plugin {

// The plain transport over `transport`, which stays the caller's; `plugin` outlives it.
std::unique_ptr<PlainTransport> make_plain(const Plugin& plugin, kolo_transport* transport,
                                           int rank, int size);

}  // namespace kolo::plugin
