// Puts the requested decorators around a transport: shape inside, then fault, then trace outside.
//
// So a trace shows what the collectives see, and faults work on any network.
#pragma once

#include <memory>
#include <string>

#include "transports/registry.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// Collective over all ranks of the request if it has a shape. Throws std::invalid_argument with the
// variable's name if a text cannot be parsed.
std::unique_ptr<Transport> decorate(std::unique_ptr<Transport> inner,
                                    const TransportRequest& request);

}  // namespace kolo::inline v0
