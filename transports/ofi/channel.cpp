#include "transports/ofi/channel.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/base/check.h"
#include "transports/ofi/provider.h"
#include "transports/posix/host/streaming_copy.h"

namespace kolo::inline v0::ofi {

namespace {

using namespace std::chrono_literals;

constexpr const char* kTooLong = "a segment is longer than Capabilities::segment_bytes";

// How long announced data may still arrive after the peer has ended.
constexpr auto kOnItsWay = 2s;

// The same if the peer has announced nothing. Its last message may still wait for a receive, since
// only a few receives serve all peers.
constexpr auto kNotYetHeard = 200ms;

// After so many fruitless calls of is_drained(), prepost buffers. The peer may wait in the same
// way: each side would wait until the other one posts a receive.
constexpr unsigned kFruitless = 64;

// Segments up to this size are received into preposted buffers and copied. The copy costs less than
// an unexpected message.
constexpr std::size_t kCopiedBytes = 4096;

// rxm sends up to this size eagerly (FI_OFI_RXM_BUFFER_SIZE).
constexpr std::size_t kNeverAnnounced = 16384;

// Buffers posted while the caller declares what to expect, including the one for the next segment.
constexpr std::size_t kGuessed = 2;

// Address for empty receives, since some providers reject null.
std::byte nothing{};

}  // namespace

OfiChannel::OfiChannel(Endpoint& endpoint, PeerLiveness& liveness, const Pair& pair)
    : endpoint_(endpoint),
      liveness_(liveness),
      pair_(pair),
      most_unannounced_(endpoint.provider().find("ofi_rxm") != std::string_view::npos
                            ? kNeverAnnounced
                            : SIZE_MAX),
      out_(pair.window),
      in_(pair.receives) {
  capabilities_.segment_bytes = pair.longest_bytes;
  capabilities_.straight_segment_bytes = pair.longest_bytes;
  capabilities_.preferred_segment_bytes = pair.segment_bytes;
  capabilities_.shortest_segment_bytes = pair.segment_bytes;
  capabilities_.credit_segments = static_cast<int>(kSlots);
  capabilities_.zero_copy_bytes = endpoint.inject_bytes() + 1;
  capabilities_.latency_us = 2;
  capabilities_.bandwidth_GBps = 4;
  for (Outgoing& each : out_) each.operation.owner = this;
  for (Incoming& each : in_) each.operation.owner = this;
}

// --- sending ---

bool OfiChannel::make_room(const char* operation) {
  throw_if_dead();
  check(!is_reserved_, "the slot reserved last was not committed");
  liveness_.join(pair_.peer);
  if (!has_room()) endpoint_.poll();
  find_lost(operation);
  return has_room();
}

std::byte* OfiChannel::reserve(std::size_t bytes) {
  check(bytes <= capabilities_.segment_bytes, kTooLong);
  if (!make_room("send to")) return nullptr;
  if (slot_until_[slots_used_ % kSlots] > completed_) endpoint_.poll();
  if (slot_until_[slots_used_ % kSlots] > completed_) return nullptr;
  if (!slots_) slots_ = allocate_aligned(slot_stride(pair_.longest_bytes) * kSlots);
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return slot();
}

void OfiChannel::commit(unsigned flags) {
  throw_if_closed();
  check(is_reserved_, "commit() without a reserved slot");
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  is_reserved_ = false;
  throw_if_dead();
  std::byte* const filled = slot();
  slot_until_[slots_used_++ % kSlots] = sent_ + 1;
  enqueue({filled, reserved_bytes_});
}

bool OfiChannel::send(std::span<const std::byte> data, unsigned flags) {
  check(data.size() <= capabilities_.segment_bytes, kTooLong);
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  if (!make_room("send to")) return false;
  enqueue(data);
  return true;
}

void OfiChannel::enqueue(std::span<const std::byte> data) {
  Outgoing& segment = outgoing(sent_++);
  segment.data = data;
  segment.is_done = false;
  statistics_.bytes_sent += data.size();
  ++statistics_.segments_sent;
  push();
  throw_if_dead();
}

// Sent data counts as sent, even if this rank has learned since then that the peer is done.
bool OfiChannel::is_drained() {
  throw_if_closed();
  if (completed_ < sent_ && !lost_) {
    endpoint_.poll();
    push();
  }
  // A peer that has only announced its end may still take data in flight.
  if (completed_ < sent_ && (lost_ || liveness_.is_gone(pair_.peer))) {
    if (!has_peer_taken_all()) find_lost("send to");
    completed_ = sent_;
  }
  if (completed_ < sent_ && ++fruitless_ > kFruitless) post_ahead(pair_.buffers);
  if (completed_ == sent_) fruitless_ = 0;
  return completed_ == sent_;
}

bool OfiChannel::has_peer_taken_all() {
  liveness_.look();
  return liveness_.last_word(pair_.peer) == sent_;
}

// Posts in order: after a refused segment, no later one is posted.
void OfiChannel::push() {
  while (posted_ < sent_ && !lost_) {
    const Posted posted = post(outgoing(posted_));
    if (posted == Posted::kNotNow) break;
    if (posted == Posted::kNever)
      return lose(ErrorCode::kPeerLost, cannot("send to", endpoint_.why()));
    outgoing(posted_++).says_taken = taken_;
  }
  while (completed_ < posted_ && outgoing(completed_).is_done) ++completed_;
  push_control();
}

Posted OfiChannel::post(Outgoing& segment) {
  const auto tag = data_tag(pair_.peer_token, pair_.rank);
  const auto word = word_of(MessageKind::kData, taken_);
  if (segment.data.size() > endpoint_.inject_bytes())
    return endpoint_.send(pair_.peer, segment.data, tag, word, segment.operation);
  const auto data = segment.data.empty() ? std::span<const std::byte>(&nothing, 0) : segment.data;
  const Posted posted = endpoint_.inject(pair_.peer, data, tag, word);
  segment.is_done = posted == Posted::kYes;
  return posted;
}

// `low`: the low bits of the number of segments that the peer has taken. The peer knows the credit
// that those segments carried, but not the credit in segments it has not read yet. told_ counts
// only the former.
void OfiChannel::hear_taken(std::uint64_t low) {
  const std::uint64_t taken = whole_count(low, taken_there_);
  if (taken == taken_there_) return;
  if (taken > sent_)
    return lose(
        ErrorCode::kProtocol,
        cannot("send to", fmt::format("it reports {} segments taken, of {} sent", taken, sent_)));
  taken_there_ = taken;
  told_ = std::max(told_, outgoing(taken - 1).says_taken);
}

std::uint64_t OfiChannel::word_of(MessageKind kind, std::uint64_t count) const {
  return to_bits({kind, static_cast<std::uint32_t>(pair_.rank), count});
}

void OfiChannel::push_owed() {
  push();
  if (lost_ && has_refused_credit_) throw *lost_;
}

void OfiChannel::push_control() {
  owes_control_ = false;
  if (lost_ || total_) {  // a peer that is done needs no credit
    told_ = taken_;
  } else if (taken_ - told_ >= pair_.window / 2) {
    give_credit();
  }
  if (!owes_heard_ || lost_) return;
  if (say(MessageKind::kHeard, 0) == Posted::kNotNow) {
    owes_control_ = true;
  } else {
    owes_heard_ = false;
  }
}

void OfiChannel::give_credit() {
  const Posted posted = say(MessageKind::kCredit, taken_);
  if (posted == Posted::kYes) told_ = taken_;
  owes_control_ = posted != Posted::kYes;
  if (posted == Posted::kNever) {
    bear_refusal();
  } else {
    refused_since_.reset();
  }
}

// The provider refuses credit for ever. A peer that is done or has ended needs no credit, and its
// data may still be read. Its endpoint may close before its liveness connection reports the end,
// hence `patience`. A peer that is alive would wait for ever, so it counts as lost.
void OfiChannel::bear_refusal() {
  const std::string why = endpoint_.why();
  liveness_.look();
  if (liveness_.is_gone(pair_.peer) || liveness_.last_word(pair_.peer)) {
    told_ = taken_;
    owes_control_ = false;
    return;
  }
  const auto now = Clock::now();
  if (!refused_since_) refused_since_ = now;
  if (now - *refused_since_ < pair_.patience) return;
  owes_control_ = false;
  has_refused_credit_ = true;
  lose(ErrorCode::kPeerLost,
       cannot(
           "give credit to",
           why + ", though it has not ended: check for a firewall or a network failure between the "
                 "hosts, or use another provider (KOLO_OFI_PROVIDER)"));
}

// Posts a control message. If the peer cannot be reached any more, it needs no such message.
Posted OfiChannel::say(MessageKind kind, std::uint64_t count) {
  return endpoint_.inject(pair_.peer, {&nothing, 0}, control_tag(pair_.peer_token),
                          word_of(kind, count));
}

// --- receiving ---

const std::byte* OfiChannel::view(std::size_t bytes) {
  check(bytes <= capabilities_.segment_bytes, kTooLong);
  if (!is_viewing_) {
    if (!await(bytes, {}, true)) return nullptr;
    is_viewing_ = true;
    viewed_bytes_ = bytes;
  } else {
    throw_if_dead();
  }
  return incoming(taken_).place.data();
}

void OfiChannel::release() {
  throw_if_closed();
  check(is_viewing_, "release() without a view");
  is_viewing_ = false;
  take(viewed_bytes_, true);
}

bool OfiChannel::receive(std::span<std::byte> into, unsigned flags) {
  throw_if_closed();
  check(into.size() <= capabilities_.segment_bytes, kTooLong);
  check(!is_viewing_, "receive() before the view was released");
  const bool is_short = into.size() <= kCopiedBytes;
  if (!await(into.size(), into, is_short)) return false;
  const Incoming& segment = incoming(taken_);
  if (segment.is_own && !into.empty()) {
    if ((flags & kCold) != 0) {
      posix::streaming_copy(into.data(), segment.place.data(), into.size());
    } else {
      std::memcpy(into.data(), segment.place.data(), into.size());
    }
  }
  take(into.size(), is_short);
  return true;
}

// Short segments go into a buffer, as in receive().
bool OfiChannel::expect(std::size_t ahead, std::span<std::byte> into) {
  throw_if_dead();
  check(into.size() <= capabilities_.segment_bytes, kTooLong);
  is_told_ = true;
  const std::uint64_t segment = taken_ + ahead;
  if (segment != asked_ || ahead >= in_.size()) return segment < asked_;
  if (!may_post(into.size())) return false;
  return post_next(into, into.size() <= kCopiedBytes);
}

// True once the next segment, of `bytes`, has arrived, in `into` or in a buffer.
bool OfiChannel::await(std::size_t bytes, std::span<std::byte> into, bool is_own) {
  throw_if_dead();
  liveness_.join(pair_.peer);
  if (asked_ == taken_) {
    if (!may_post(bytes)) find_lost("receive from");
    if (!post_next(into, is_own)) {
      endpoint_.poll();
      return false;
    }
  }
  const std::size_t ahead = is_told_ ? kGuessed : pair_.buffers;
  if (looks_ahead_) post_ahead(ahead);
  const Incoming& segment = incoming(taken_);
  check(!is_own || segment.is_own, "view() of a segment that was to be received");
  check(is_own || segment.is_own || segment.place.data() == into.data() || into.empty(),
        "receive() of a segment again, into other memory than before");
  if (!segment.has_come) endpoint_.poll();
  throw_if_dead();
  if (!segment.has_come) {
    find_end("receive from");
    if (!segment.has_come) return false;
  }
  if (segment.bytes == bytes) return true;
  lose(ErrorCode::kProtocol,
       fmt::format("rank {}: received a segment of {} bytes from rank {} (ofi), "
                   "expected {} bytes: run the same program on every rank",
                   pair_.rank, segment.bytes, pair_.peer, bytes));
  throw_if_dead();
  return false;
}

// libfabric's rxm (1.17) crashes if a receive matches a long announced message whose sender has
// ended: it reads that peer's memory. So check the peer's liveness before posting. Such a message
// is lost in any case. (A rank closes its liveness connections before its endpoint.)
bool OfiChannel::may_post(std::size_t bytes) {
  if (bytes <= most_unannounced_) return true;
  liveness_.look();
  return !liveness_.is_gone(pair_.peer);
}

bool OfiChannel::post_next(std::span<std::byte> into, bool is_own) {
  Incoming& segment = incoming(asked_);
  if (is_own) {
    if (!has_free_buffer()) return false;
    const std::size_t stride = slot_stride(pair_.longest_bytes);
    if (!buffers_) buffers_ = allocate_aligned(stride * pair_.buffers);
    into = {buffers_.get() + buffers_posted_ % pair_.buffers * stride, pair_.longest_bytes};
  } else if (into.empty()) {
    into = {&nothing, 0};
  }
  segment.place = into;
  segment.is_own = is_own;
  segment.has_come = false;
  const Posted posted =
      endpoint_.receive(into, data_tag(pair_.own_token, pair_.peer), segment.operation);
  if (posted == Posted::kNever) lose(ErrorCode::kPeerLost, cannot("receive from", endpoint_.why()));
  if (posted != Posted::kYes) return false;
  ++asked_;
  buffers_posted_ += is_own ? 1 : 0;
  return true;
}

// Posts receives into buffers, which accept a segment of any size.
void OfiChannel::post_ahead(std::size_t receives) {
  if (asked_ - taken_ >= receives || !has_free_buffer() || !may_post(pair_.longest_bytes)) return;
  while (asked_ - taken_ < receives && post_next({}, true)) {
  }
}

// `goes_on`: the next segment is likely of the same kind. If the caller declares what to expect,
// guess only after short segments, which often come before an undeclared one.
void OfiChannel::take(std::size_t bytes, bool goes_on) {
  buffers_free_ += incoming(taken_).is_own ? 1 : 0;
  looks_ahead_ = goes_on && (!is_told_ || bytes <= kCopiedBytes);
  ++taken_;
  statistics_.bytes_received += bytes;
  ++statistics_.segments_received;
  if (taken_ - told_ >= pair_.window / 2) push_control();
}

// --- completions of the provider ---

void OfiChannel::done(Operation& operation, std::size_t bytes, std::uint64_t word) {
  if (!operation.is_receive) {
    const auto place = reinterpret_cast<Outgoing*>(&operation) - out_.data();
    out_[static_cast<std::size_t>(place)].is_done = true;
    while (completed_ < posted_ && outgoing(completed_).is_done) ++completed_;
    return;
  }
  const auto place = reinterpret_cast<Incoming*>(&operation) - in_.data();
  Incoming& segment = in_[static_cast<std::size_t>(place)];
  segment.has_come = true;
  segment.bytes = bytes;
  hear_taken(immediate_from_bits(word).count);
}

void OfiChannel::failed(Operation& operation, const std::string& why) {
  const char* const way_out =
      known_provider(endpoint_.provider()).shares_regions
          ? " (if the kernel refuses copies between processes, process_vm_readv, "
            "FI_SHM_DISABLE_CMA=1 does without them, and so does KOLO_OFI_PROVIDER=tcp)"
          : "";
  lose(ErrorCode::kPeerLost,
       cannot(operation.is_receive ? "receive from" : "send to", why + way_out));
}

void OfiChannel::hear(const ImmediateData& message) {
  switch (message.kind) {
    case MessageKind::kCredit:
      hear_taken(message.count);
      break;
    case MessageKind::kEnd:
      total_ = whole_count(message.count, taken_);
      owes_heard_ = true;
      push_control();
      break;
    case MessageKind::kHeard:
      is_heard_ = true;
      break;
    default:
      break;
  }
}

// --- end of the channel ---

bool OfiChannel::say_goodbye() {
  if (lost_ || is_closed_ || liveness_.is_gone(pair_.peer)) return true;
  push();
  if (completed_ < sent_ || has_unposted()) return lost_.has_value();
  if (sent_ == 0 || total_) return true;  // a peer that is done too takes nothing any more
  if (!has_said_end_) {
    const Posted posted = say(MessageKind::kEnd, sent_);
    has_said_end_ = posted == Posted::kYes;
    if (posted == Posted::kNever) return true;
  }
  return is_heard_ || taken_there_ == sent_;
}

bool OfiChannel::is_broken_off() const {
  if (lost_ || completed_ < sent_) return true;
  if (!liveness_.is_gone(pair_.peer) || (total_ && *total_ == taken_)) return false;
  return !liveness_.last_word(pair_.peer);
}

void OfiChannel::throw_if_closed() const {
  if (!is_closed_) return;
  throw Error(ErrorCode::kAborted, kNoPeer,
              fmt::format("rank {}: this transport was closed", pair_.rank));
}

void OfiChannel::throw_if_dead() const {
  throw_if_closed();
  if (lost_) throw *lost_;
}

// A peer that is done or has ended takes nothing any more.
void OfiChannel::find_lost(const char* operation) {
  throw_if_dead();
  if (!total_ && !liveness_.is_gone(pair_.peer)) return;
  lose(ErrorCode::kPeerLost, cannot(operation, ""));
  throw_if_dead();
}

// Data that arrived before the peer's end still counts. If the peer announced more than has
// arrived, wait for it for a bounded time.
void OfiChannel::find_end(const char* operation) {
  if (total_ && *total_ == taken_) return find_lost(operation);
  if (!liveness_.is_gone(pair_.peer)) return;
  endpoint_.poll();
  if (incoming(taken_).has_come) return;
  const auto now = Clock::now();
  if (gone_since_ == Clock::time_point{}) gone_since_ = now;
  if (now - gone_since_ < (total_ ? kOnItsWay : kNotYetHeard)) return;
  find_lost(operation);
}

// "7 segments sent, 6 posted, 5 completed, 3 taken by the peer, at most 32 in flight; 2 received, 4
// receives posted, 1 of them completed; the peer knows of 0 received".
std::string OfiChannel::under_way() const {
  std::size_t come = 0;
  for (std::uint64_t segment = taken_; segment < asked_; ++segment)
    come += in_[segment % in_.size()].has_come ? 1 : 0;
  return fmt::format(
      "{} segments sent, {} posted, {} completed, {} taken by the peer, at most {} in flight; {} "
      "received, {} receives posted, {} of them completed; the peer knows of {} received{}{}",
      sent_, posted_, completed_, taken_there_, pair_.window, taken_, asked_ - taken_, come, told_,
      owes_control_ ? "; a control message cannot be posted" : "",
      total_ ? fmt::format("; the peer ended after {}", *total_) : "");
}

bool OfiChannel::is_ending() const {
  return gone_since_ != Clock::time_point{} && !lost_ && Clock::now() - gone_since_ < kOnItsWay;
}

void OfiChannel::lose(ErrorCode code, const std::string& text) {
  if (!lost_) lost_.emplace(code, pair_.peer, text);
}

std::string OfiChannel::cannot(const char* operation, const std::string& why) const {
  return fmt::format("rank {}: cannot {} rank {} (ofi, {}): {}; its own output may say why",
                     pair_.rank, operation, pair_.peer, endpoint_.provider(),
                     why.empty() ? "it has ended" : why);
}

}  // namespace kolo::inline v0::ofi
