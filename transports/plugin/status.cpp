#include "transports/plugin/status.h"

#include <fmt/format.h>
#include <cstring>
#include <stdexcept>
#include <string>

#include "transports/base/check.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo::inline v0::plugin {

namespace {

static_assert(KOLO_PEER_LOST == static_cast<int>(ErrorCode::kPeerLost));
static_assert(KOLO_DEADLINE == static_cast<int>(ErrorCode::kDeadline));
static_assert(KOLO_MISMATCH == static_cast<int>(ErrorCode::kMismatch));
static_assert(KOLO_ABORTED == static_cast<int>(ErrorCode::kAborted));
static_assert(KOLO_UNAVAILABLE == static_cast<int>(ErrorCode::kUnavailable));
static_assert(KOLO_PROTOCOL == static_cast<int>(ErrorCode::kProtocol));
static_assert(KOLO_SYSTEM == static_cast<int>(ErrorCode::kSystem));
static_assert(KOLO_OUT_OF_MEMORY == static_cast<int>(ErrorCode::kOutOfMemory));

constexpr std::uint64_t kLongestSegment = std::uint64_t{1} << 30;

std::string full_text(const Plugin& plugin, int rank, int peer, std::string_view text,
                      ErrorCode code) {
  // kolo's own text: the job's first failure, or a failed wait for other ranks.
  if (text.starts_with("rank ") || code == ErrorCode::kAborted) return std::string(text);
  if (text.empty()) text = "the transport gave no reason";
  if (peer == kNoPeer) return fmt::format("rank {}: {}: {}", rank, plugin.table.name, text);
  const std::string_view what = code == ErrorCode::kPeerLost ? "lost" : "with";
  return fmt::format("rank {}: {} {} rank {}: {}", rank, plugin.table.name, what, peer, text);
}

}  // namespace

kolo_error no_error() {
  kolo_error error{};
  error.size = sizeof error;
  error.code = KOLO_SYSTEM;
  error.peer = kNoPeer;
  return error;
}

void StatusChecker::fail(kolo_status status) {
  if (status != KOLO_FAILED) {
    fail_as_broken(fmt::format(
        "a function of its table returned {}, which is not KOLO_FAILED, KOLO_NOT_NOW or "
        "KOLO_DONE",
        static_cast<int>(status)));
  }
  const bool is_known = error_.code >= KOLO_PEER_LOST && error_.code <= KOLO_OUT_OF_MEMORY;
  const auto code = is_known ? static_cast<ErrorCode>(error_.code) : ErrorCode::kSystem;
  const int peer = error_.peer < 0 ? kNoPeer : error_.peer;
  const std::string text = one_line({error_.text, ::strnlen(error_.text, sizeof error_.text)});
  const Error error(code, peer, full_text(plugin_, rank_, peer, text, code));
  error_ = no_error();
  throw error;
}

void StatusChecker::fail_as_broken(std::string_view what) const {
  throw Error(ErrorCode::kProtocol, kNoPeer,
              fmt::format("rank {}: {}: {}: fix the transport (transports/plugin.h)", rank_,
                          plugin_.table.name, what));
}

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    const bool is_blank = c == '\n' || c == '\r' || c == '\t';
    if (is_blank) c = ' ';
    if (c < ' ' || c > '~') c = '?';
  }
  return line;
}

void require_segment_bytes(const Plugin& plugin, std::uint64_t bytes) {
  if (bytes > 0 && bytes <= kLongestSegment && bytes % kSegmentAlignment == 0) return;
  throw std::invalid_argument(
      fmt::format("{}: a transport's segment_bytes must be a multiple of 64, from 64 to {}, and is "
                  "{}: fix the transport (transports/plugin.h)",
                  plugin.table.name, kLongestSegment, bytes));
}

kolo_channel* channel_to(const Plugin& plugin, kolo_transport* transport, int peer) {
  kolo_channel* const channel = plugin.table.channel(transport, peer);
  check(channel != nullptr, "a transport must have a channel to each of its peers");
  return channel;
}

}  // namespace kolo::inline v0::plugin
