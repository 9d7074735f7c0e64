// Transport over the table of an external transport.
#pragma once

#include <memory>

#include "transports/plugin/load.h"
#include "transports/registry.h"

namespace kolo::inline v0::plugin {

// Collective over the request's ranks. Error kUnavailable if the ranks are farther apart than the
// transport reaches, or if this machine cannot run it; else the error of its make function.
std::unique_ptr<Transport> make_plugged(const Plugin& plugin, const TransportRequest& request);

}  // namespace kolo::inline v0::plugin
