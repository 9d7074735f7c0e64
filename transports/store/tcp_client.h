// A TCP store's client over a socket that somebody has connected: what connect_tcp_store() gives.
#pragma once

#include <memory>
#include <string>

#include "transports/posix/descriptor.h"
#include "transports/rendezvous.h"

namespace kolo {

// Says hello and waits for the answer; null where the connection ends without a byte, as a server
// does to who seems a stranger: try again. `address`: for messages. Error kDeadline where no answer
// comes in time, kProtocol where it is another version's; other bytes are kAborted.
std::shared_ptr<Store> tcp_store_over(posix::Descriptor socket, std::string address,
                                      Deadline deadline);

}  // namespace kolo
