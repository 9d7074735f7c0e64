// Error of a job at run time: a lost peer, a passed deadline, ranks that disagree.
//
// Two kinds of failure are never mixed. A bug in the calling program (a bad rank, a wrong count) is
// std::invalid_argument. All other failures are kolo::Error: a code to act on, the peer that caused
// it, and a message. The message names the rank, the operation, the peer, the time, and what to do.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace kolo::inline v0 {

enum class ErrorCode {
  kPeerLost,     // the peer's process or connection is gone
  kDeadline,     // a wait passed its deadline
  kMismatch,     // ranks called different collectives, types, operations or counts
  kAborted,      // a rank called abort(), or a failure elsewhere ended the job
  kUnavailable,  // this build or machine lacks a requested transport, device or port
  kProtocol,     // bytes from the wire that no kolo peer would send
  kSystem,       // the operating system refused; the message carries errno's text
  kOutOfMemory,  // a rank ran out of memory
};

std::string_view to_string(ErrorCode code);

inline constexpr int kNoPeer = -1;

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, int peer, const std::string& message)
      : std::runtime_error(message), code_(code), peer_(peer) {}

  ErrorCode code() const { return code_; }

  // The rank that caused the failure, by its number in the job (not in a group), or kNoPeer. All
  // ranks that report the same failure have the same peer.
  int peer() const { return peer_; }

 private:
  ErrorCode code_;
  int peer_;
};

// "rank 2: text"; only `text` if it already begins with a speaking rank ("rank 1: ..."), or with
// this rank ("rank 2 has ...").
std::string by_rank(int rank, std::string_view text);

}  // namespace kolo::inline v0
