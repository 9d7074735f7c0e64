#include "collectives/engine/failure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace kolo::inline v0 {

namespace {

constexpr std::array kCodes = {ErrorCode::kPeerLost, ErrorCode::kDeadline,    ErrorCode::kMismatch,
                               ErrorCode::kAborted,  ErrorCode::kUnavailable, ErrorCode::kProtocol,
                               ErrorCode::kSystem,   ErrorCode::kOutOfMemory};

// The number at the start of a text, or kNoPeer.
int leading_number(std::string_view text) {
  int rank = kNoPeer;
  std::from_chars(text.data(), text.data() + text.size(), rank);
  return std::max(rank, kNoPeer);
}

// The rank at the start of a text such as "rank 2 (node1, pid 17) is gone: ...", or kNoPeer.
int leading_rank(std::string_view text) {
  constexpr std::string_view kRank = "rank ";
  return text.starts_with(kRank) ? leading_number(text.substr(kRank.size())) : kNoPeer;
}

}  // namespace

std::string to_text(const Error& failure) {
  const std::string peer =
      failure.peer() == kNoPeer ? "" : fmt::format(", rank {}", failure.peer());
  return fmt::format("{} [{}{}]", failure.what(), to_string(failure.code()), peer);
}

Error failure_from(std::string_view text) {
  const auto bracket = text.rfind(" [");
  const std::string_view words = bracket == std::string_view::npos || !text.ends_with(']')
                                     ? std::string_view()
                                     : text.substr(bracket + 2, text.size() - bracket - 3);
  const auto comma = words.find(", ");
  for (const ErrorCode code : kCodes) {
    if (words.substr(0, comma) != to_string(code)) continue;
    const std::string_view rank = comma == std::string_view::npos ? "" : words.substr(comma + 2);
    return {code, leading_rank(rank), std::string(text.substr(0, bracket))};
  }
  const bool is_gone = text.find(" is gone") != std::string_view::npos;
  return {is_gone ? ErrorCode::kPeerLost : ErrorCode::kAborted, leading_rank(text),
          std::string(text)};
}

std::string to_text(std::span<const WaitEdge> awaited) {
  std::string text;
  for (const WaitEdge& one : awaited)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", one.rank, one.is_to_send ? "<" : "");
  return text;
}

std::vector<WaitEdge> wait_edges_from(std::string_view text, int size) {
  std::vector<WaitEdge> awaited;
  text = text.substr(0, text.find('\n'));
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const int rank = leading_number(word);
    if (rank >= 0 && rank < size) awaited.push_back({rank, word.ends_with('<')});
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return awaited;
}

}  // namespace kolo::inline v0
