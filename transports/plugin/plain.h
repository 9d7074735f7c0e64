// PlainTransport over the table of an external transport, for the adapter.
#pragma once

#include <memory>

#include "transports/base/adapter.h"
#include "transports/plugin/load.h"

namespace kolo::inline v0::plugin {

// `transport` stays owned by the caller; `plugin` must outlive the result.
std::unique_ptr<PlainTransport> make_plain(const Plugin& plugin, kolo_transport* transport,
                                           int rank, int size);

}  // namespace kolo::inline v0::plugin
