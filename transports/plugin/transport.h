// A Transport over a transport's table.
#pragma once

#include <memory>

#include "transports/plugin/load.h"
#include "transports/registry.h"

namespace kolo::plugin {

// Collective over the request's ranks. Error kUnavailable where they are farther apart than the
// transport reaches, or this machine cannot run it; else what its make says.
std::unique_ptr<Transport> make_plugged(const Plugin& plugin, const TransportRequest& request);

}  // namespace kolo::plugin
