// Puts the decorators that are asked for around a transport: shape, then fault, then trace outside.
//
// So a trace shows what the collectives see, and faults are there on any network.
#pragma once

#include <memory>
#include <string>

#include "transports/registry.h"
#include "transports/transport.h"

namespace kolo {

// Collective over all ranks of the request where there is a shape. std::invalid_argument where a
// text cannot be read, with the name of its variable.
std::unique_ptr<Transport> decorate(std::unique_ptr<Transport> inner,
                                    const TransportRequest& request);

}  // namespace kolo
