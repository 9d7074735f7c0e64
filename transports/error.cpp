#include "transports/error.h"

namespace kolo::inline v0 {

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
    case ErrorCode::kOutOfMemory:
      return "out of memory";
  }
  return "unknown";
}

std::string by_rank(int rank, std::string_view text) {
  const std::string own = "rank " + std::to_string(rank);
  constexpr std::string_view kRank = "rank ";
  const bool is_of_one = text.starts_with(kRank);
  const auto end = is_of_one ? text.find_first_not_of("0123456789", kRank.size()) : text.npos;
  const bool is_said = is_of_one && end != text.npos && end > kRank.size() && text[end] == ':';
  if (is_said || text.starts_with(own + ' ')) return std::string(text);
  return own + ": " + std::string(text);
}

}  // namespace kolo::inline v0
