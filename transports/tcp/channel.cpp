#include "transports/tcp/channel.h"

#include <fmt/format.h>
#include <algorithm>

#include "transports/check.h"
#include "transports/error.h"

namespace kolo::tcp {

namespace {

// What travels for a segment of no bytes.
constexpr std::byte kNothing{0};

}  // namespace

TcpChannel::TcpChannel(Door& door, int peer, std::size_t segment_bytes, std::size_t longest_bytes)
    : door_(door), peer_(peer), slot_bytes_(segment_bytes), most_viewed_bytes_(segment_bytes) {
  capabilities_.segment_bytes = std::max(segment_bytes, longest_bytes);
  capabilities_.preferred_segment_bytes = segment_bytes;
  // Every call interrupts the copying on both sides: an all-gather of 4 MiB between two ranks took
  // 650 us in segments of 256 KiB, and 360 in segments twice as long.
  capabilities_.straight_segment_bytes = std::min(2 * segment_bytes, capabilities_.segment_bytes);
  // The kernel overlaps what it copies by itself: of 32 KiB cut in four, all-reduce took 31 us, and
  // 14 whole; of chunks of 256 KiB, 192 and 120.
  capabilities_.shortest_segment_bytes = segment_bytes;
  capabilities_.credit_segments = static_cast<int>(kQueueLength);
  capabilities_.zero_copy_bytes = 1;  // no copy but the kernel's own, at any size
  capabilities_.latency_us = 4;
  capabilities_.bandwidth_GBps = 4;
}

std::string TcpChannel::why_unconnected() const {
  if (!is_connected()) return door_.why_unconnected(peer_);
  if (is_dead() || !is_more_announced()) return "";
  return fmt::format(
      "rank {} at {} has sent by another tcp connection, which has not come: see whether a "
      "firewall "
      "is between",
      peer_, door_.card_of(peer_).address());
}

void TcpChannel::ask_for_connection(Door::When when) {
  door_.call(peer_, 0, when);
  door_.look();
}

// --- out ---

std::byte* TcpChannel::slot(std::size_t index) {
  return slots_.get() + index * slot_stride(slot_bytes_);
}

// Longer than they are as a rule only where such a segment is wanted: they take memory.
void TcpChannel::have_slots_of(std::size_t bytes) {
  if (slots_ && bytes <= slot_bytes_) return;
  if (slots_ && queued_ > 0) outgrown_.push_back(std::move(slots_));
  slot_bytes_ = std::max(slot_bytes_, bytes);
  slots_ = allocate_aligned(slot_stride(slot_bytes_) * kQueueLength);
}

std::byte* TcpChannel::reserve(std::size_t bytes) {
  throw_if_dead();
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  if (queued_ == kQueueLength) flush();
  if (queued_ == kQueueLength) return nullptr;
  have_slots_of(bytes);
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return slot((head_ + queued_) % kQueueLength);
}

void TcpChannel::commit(unsigned flags) {
  check(is_reserved_, "commit() without a reserved slot");
  is_reserved_ = false;
  enqueue(slot((head_ + queued_) % kQueueLength), reserved_bytes_, flags);
}

bool TcpChannel::send(std::span<const std::byte> data, unsigned flags) {
  throw_if_dead();
  check(data.size() <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "send() while a slot is reserved");
  if (queued_ == kQueueLength) flush();
  if (queued_ == kQueueLength) return false;
  enqueue(data.data(), data.size(), flags);
  return true;
}

bool TcpChannel::is_drained() {
  if (queued_ > 0) flush();
  return queued_ == 0;
}

void TcpChannel::enqueue(const std::byte* data, std::size_t bytes, unsigned flags) {
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  statistics_.bytes_sent += bytes;
  ++statistics_.segments_sent;
  queue_[(head_ + queued_) % kQueueLength] =
      bytes > 0 ? Piece{data, bytes, bytes} : Piece{&kNothing, 1, 1};
  ++queued_;
  const bool waits_for_next = (flags & kMore) != 0 && queued_ < kQueueLength;
  if (!waits_for_next) flush();
}

void TcpChannel::flush() {
  throw_if_dead();
  push();
  if (is_dead()) throw_if_dead();
}

void TcpChannel::pop_piece() {
  head_ = (head_ + 1) % kQueueLength;
  --queued_;
  if (queued_ > 0) return;
  outgrown_.clear();
  if (!is_reserved_) head_ = 0;  // the first slot again, which is still in the cache
}

// --- in ---

const std::byte* TcpChannel::view(std::size_t bytes) {
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  if (is_viewing_) return segment_.get();
  if (!segment_ || bytes > most_viewed_bytes_) {
    most_viewed_bytes_ = std::max(most_viewed_bytes_, bytes);
    segment_ = allocate_aligned(slot_stride(most_viewed_bytes_));
  }
  if (!fill(segment_.get(), bytes)) return nullptr;
  is_viewing_ = true;
  viewed_bytes_ = bytes;
  return segment_.get();
}

void TcpChannel::release() {
  check(is_viewing_, "release() without a view");
  is_viewing_ = false;
  finish_segment(viewed_bytes_);
}

bool TcpChannel::receive(std::span<std::byte> into, unsigned /*flags*/) {
  check(into.size() <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_viewing_, "receive() before the view was released");
  std::byte nothing{};
  if (!fill(into.empty() ? &nothing : into.data(), into.size())) return false;
  finish_segment(into.size());
  return true;
}

void TcpChannel::finish_segment(std::size_t bytes) {
  statistics_.bytes_received += bytes;
  ++statistics_.segments_received;
}

// True once the whole segment of `bytes` lies at `into`.
bool TcpChannel::fill(std::byte* into, std::size_t bytes) {
  if (pull(into, std::max<std::size_t>(bytes, 1))) return true;
  if (queued_ > 0) flush();  // the peer may wait for it
  return false;
}

// --- the end ---

void TcpChannel::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  queued_ = 0;
  close_sockets();
}

void TcpChannel::throw_if_dead() const {
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, peer_, lost_);
  if (is_closed_) {
    throw Error(ErrorCode::kAborted, kNoPeer,
                fmt::format("rank {}: this transport was closed", door_.rank()));
  }
}

void TcpChannel::lose(const char* operation, int error) noexcept {
  lose(operation, fmt::format("{}; most likely its process has ended: look at its last output",
                              error == 0 ? "it closed the connection" : posix::error_text(error)));
}

void TcpChannel::lose(const char* operation, const std::string& why) noexcept {
  if (is_dead()) return;
  lost_ = fmt::format("rank {}: cannot {} rank {} at {} (tcp): {}", door_.rank(), operation, peer_,
                      door_.card_of(peer_).address(), why);
}

void TcpChannel::cannot_connect(const std::string& why) noexcept {
  if (is_dead()) return;
  lost_ = fmt::format("rank {}: cannot connect to rank {} at {} (tcp): {}", door_.rank(), peer_,
                      door_.card_of(peer_).address(), why);
}

bool TcpChannel::may_be_on_its_way() {
  // There, what came before an end is seen before it.
  if (door_.card_of(peer_).is_on_this_host) return false;
  const auto now = Clock::now();
  if (ended_ == Clock::time_point{}) {
    ended_ = now;
    door_.wake_at(now + door_.on_its_way());
  }
  return now - ended_ < door_.on_its_way();
}

}  // namespace kolo::tcp
