// TCP store client over a connected socket, as connect_tcp_store() returns it.
#pragma once

#include <memory>
#include <string>

#include "transports/posix/descriptor.h"
#include "transports/rendezvous.h"

namespace kolo {

// Sends the hello and waits for the answer. Returns null if the connection ends without a byte: the
// server may have dropped it among too many new connections, so retry. `address`: for messages.
// Errors: kDeadline for no answer in time, kProtocol for a different version, kAborted for bytes of
// another protocol.
std::shared_ptr<Store> tcp_store_over(posix::Descriptor socket, std::string address,
                                      Deadline deadline);

}  // namespace kolo
