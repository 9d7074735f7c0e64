// TCP store client over a connected socket, as connect_tcp_store() returns it.
#pragma once

#include <memory>
#include <string>

#include "transports/posix/descriptor.h"
#include "transports/rendezvous.h"

namespace kolo {

// Sends the hello and waits for the answer. Returns null if the connection ends without a byte: the
// server may have dropped it among too many new connections, so retry; or it serves another job.
// `address`: for messages.
// Errors: kDeadline for no answer in time, kProtocol for a different version, kAborted for bytes of
// another protocol.
struct TcpStoreOptions {
  Deadline deadline;                       // of the whole attempt to connect
  Clock::time_point start = Clock::now();  // of that attempt, for messages
  Deadline answer_by = Deadline::max();    // a shorter deadline for the answer
  int server = kNoPeer;                    // the rank that serves the store
  std::string job = {};                    // as the server's
};
std::shared_ptr<Store> tcp_store_over(posix::Descriptor socket, std::string address,
                                      const TcpStoreOptions& options);

}  // namespace kolo
