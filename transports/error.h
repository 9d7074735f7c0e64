// What goes wrong and is nobody's bug: a peer is lost, a deadline passes, ranks disagree.
//
// Two kinds of failure are never mixed. A bug in the calling program (a bad rank, a wrong count) is
// std::invalid_argument. A fate is kolo::Error: a code to act on, the peer it came from, and a
// message that says who, what, whom, how long, and what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kolo {

enum class ErrorCode {
  kPeerLost,     // the peer's process or connection is gone
  kDeadline,     // a wait passed its deadline
  kMismatch,     // ranks called different collectives, types, operations or counts
  kAborted,      // somebody called abort(), or a failure elsewhere poisoned the job
  kUnavailable,  // this build or machine lacks what was asked for (a transport, a device, a port)
  kProtocol,     // bytes from the wire that no kolo peer would send
  kSystem,       // the operating system refused; the message carries errno's text
};

std::string_view to_string(ErrorCode code);

inline constexpr int kNoPeer = -1;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, int peer, const std::string& message)
      : std::runtime_error(message), code_(code), peer_(peer) {}

  ErrorCode code() const { return code_; }

  // The rank that the failure came from, by its number in the job, not in a group; or kNoPeer. The
  // same on all ranks that hear of one failure.
  int peer() const { return peer_; }

 private:
  ErrorCode code_;
  int peer_;
};

// "rank 2: text"; `text` itself where it says already which rank speaks ("rank 1: ..."), or is of
// that rank ("rank 2 has ...").
std::string by_rank(int rank, std::string_view text);

}  // namespace kolo
