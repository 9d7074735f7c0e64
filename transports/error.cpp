#include "transports/error.h"

namespace kolo {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kPeerLost:
      return "peer lost";
    case ErrorCode::kDeadline:
      return "deadline passed";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kAborted:
      return "aborted";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kProtocol:
      return "protocol";
    case ErrorCode::kSystem:
      return "system";
  }
  return "unknown";
}

}  // namespace kolo
