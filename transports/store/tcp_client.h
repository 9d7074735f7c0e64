// TCP store client over a connected socket, as connect_tcp_store() returns it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "transports/posix/descriptor.h"
#include "transports/rendezvous.h"

namespace kolo::inline v0 {

class PastJobs;

struct TcpStoreOptions {
  Deadline deadline;                       // of the whole attempt to connect
  Clock::time_point start = Clock::now();  // of that attempt, for messages
  Deadline answer_by = Deadline::max();    // a shorter deadline for the answer
  int server = kNoPeer;                    // the rank that serves the store
  std::string job = {};                    // as the server's
  const PastJobs* past = nullptr;          // as for open_file_store()
};

// Start of the reason for another attempt while a job of the past lingers.
inline constexpr std::string_view kStillServes = "it still serves a job that has failed: ";

// Sends the hello and waits for the answer. Returns null if another attempt may succeed, with the
// reason in `why`: the server may have dropped the connection among too many new ones, or it serves
// another job, or a job of the past. `address`: for messages.
// Errors: kDeadline for no answer in time, kProtocol for a different version, kAborted for bytes of
// another protocol.
std::shared_ptr<Store> tcp_store_over(posix::Descriptor socket, const std::string& address,
                                      const TcpStoreOptions& options, std::string& why);

}  // namespace kolo::inline v0
