#include "transports/tcp/channel.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0::tcp {

namespace {

// Sent for an empty segment.
constexpr std::byte kNothing{0};

}  // namespace

TcpChannel::TcpChannel(Listener& listener, int peer, std::size_t segment_bytes,
                       std::size_t longest_bytes)
    : listener_(listener), peer_(peer), memory_(segment_bytes) {
  capabilities_.segment_bytes = std::max(segment_bytes, longest_bytes);
  capabilities_.preferred_segment_bytes = segment_bytes;
  // Each system call interrupts the copying on both sides. 1 MiB one way takes 186 us in calls of
  // 256 KiB, 148 us in calls of 512 KiB and 123 us in one call.
  capabilities_.straight_segment_bytes = std::min(4 * segment_bytes, capabilities_.segment_bytes);
  // The kernel overlaps its copies without our pipelining: an all_reduce of 32 KiB took 31 us in
  // four segments and 14 us in one; with chunks of 256 KiB, 192 and 120 us.
  capabilities_.shortest_segment_bytes = segment_bytes;
  capabilities_.credit_segments = static_cast<int>(kQueueLength);
  capabilities_.zero_copy_bytes = 1;  // only the kernel's own copy, at any size
  capabilities_.latency_us = 4;
  capabilities_.bandwidth_GBps = 4;
}

std::string TcpChannel::why_unconnected() const {
  if (!is_connected() || is_dead()) return listener_.why_unconnected(peer_);
  if (is_unacknowledged()) {
    return fmt::format(
        "data sent to rank {} at {} is not acknowledged; its host or the network to it is down",
        peer_, remote_address());
  }
  if (!is_more_announced()) return "";
  return fmt::format(
      "rank {} at {} has sent data on another tcp connection that has not arrived; check for a "
      "firewall between the hosts",
      peer_, listener_.address_of(peer_).address());
}

void TcpChannel::ask_for_connection(Listener::When when) {
  listener_.call(peer_, 0, when);
  listener_.look();
}

// --- sending ---

std::byte* TcpChannel::reserve(std::size_t bytes) {
  throw_if_dead();
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  std::byte* place = place_for(bytes);
  if (place == nullptr) {
    flush();
    place = place_for(bytes);
  }
  if (place == nullptr) return nullptr;
  is_reserved_ = true;
  reserved_ = {place, bytes};
  return place;
}

std::byte* TcpChannel::place_for(std::size_t bytes) {
  if (queued_ == kQueueLength) return nullptr;
  return memory_.find(bytes, (head_ + queued_) % kQueueLength);
}

void TcpChannel::commit(unsigned flags) {
  throw_if_closed();
  check(is_reserved_, "commit() without a reserved slot");
  is_reserved_ = false;
  const bool is_in_slot = !SegmentMemory::is_short(reserved_.size());
  if (is_in_slot) memory_.take_slot();
  enqueue(reserved_, is_in_slot, flags);
}

bool TcpChannel::send(std::span<const std::byte> data, unsigned flags) {
  throw_if_dead();
  check(data.size() <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "send() while a slot is reserved");
  if (queued_ == kQueueLength) flush();
  if (queued_ == kQueueLength) return false;
  enqueue(data, false, flags);
  return true;
}

void TcpChannel::keep_last_piece() {
  Piece& last = queued_piece(queued_ - 1);
  std::byte* const slot = memory_.find_slot(last.bytes);
  std::memcpy(slot, last.data, last.bytes);
  memory_.take_slot();
  last.data = slot;
  last.is_in_slot = true;
}

bool TcpChannel::is_drained() {
  throw_if_closed();
  if (queued_ > 0) flush();
  return queued_ == 0;
}

void TcpChannel::enqueue(std::span<const std::byte> data, bool is_in_slot, unsigned flags) {
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  statistics_.bytes_sent += data.size();
  ++statistics_.segments_sent;
  queue_[(head_ + queued_) % kQueueLength] =
      data.empty() ? Piece{&kNothing, 1, 1, is_in_slot}
                   : Piece{data.data(), data.size(), data.size(), is_in_slot};
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
  if (queue_[head_].is_in_slot) memory_.give_slot_back();
  head_ = (head_ + 1) % kQueueLength;
  --queued_;
  if (queued_ == 0 && !is_reserved_)
    head_ = 0;  // reuse the first cell, which is still in the cache
}

// --- receiving ---

const std::byte* TcpChannel::view(std::size_t bytes) {
  throw_if_closed();
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  if (is_viewing_) return memory_.in_view();
  std::byte* const into = memory_.begin_view(bytes);
  if (!fill(into, bytes)) return nullptr;
  is_viewing_ = true;
  viewed_bytes_ = bytes;
  return into;
}

void TcpChannel::release() {
  throw_if_closed();
  check(is_viewing_, "release() without a view");
  is_viewing_ = false;
  memory_.end_view();
  finish_segment(viewed_bytes_);
}

bool TcpChannel::receive(std::span<std::byte> into, unsigned /*flags*/) {
  throw_if_closed();
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
  if (queued_ > 0) flush();  // the peer may need it before it can send
  return false;
}

// --- closing and errors ---

void TcpChannel::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  queued_ = 0;
  close_sockets();
}

void TcpChannel::throw_if_dead() const {
  throw_if_closed();
  if (!lost_.empty()) throw Error(lost_code_, peer_, lost_);
}

void TcpChannel::fail_as_closed() const {
  throw Error(ErrorCode::kAborted, kNoPeer,
              fmt::format("rank {}: this transport was closed", listener_.rank()));
}

void TcpChannel::lose(const char* operation, int error) noexcept {
  if (error == EFAULT) {
    lost_code_ = ErrorCode::kSystem;
    return lose(operation, fmt::format("{}; a buffer that this rank passed to the operation is "
                                       "not valid memory: check its buffers",
                                       posix::error_text(error)));
  }
  lose(operation,
       fmt::format("{}; most likely its process has ended: look at its last output{}",
                   error == 0 ? "it closed the connection" : posix::error_text(error),
                   has_heard_peer() || listener_.address_of(peer_).is_on_this_host
                       ? ""
                       : "; or its address belongs to another machine: set KOLO_TCP_HOST on its "
                         "host, or behind address translation (NAT) KOLO_TCP_ADVERTISE"));
}

void TcpChannel::lose(const char* operation, const std::string& why) noexcept {
  if (is_dead()) return;
  lost_ = fmt::format("rank {}: cannot {} rank {} at {} (tcp): {}", listener_.rank(), operation,
                      peer_, listener_.address_of(peer_).address(), why);
}

void TcpChannel::cannot_connect(const std::string& why) noexcept {
  if (is_dead()) return;
  lost_ = fmt::format("rank {}: cannot connect to rank {} at {} (tcp): {}", listener_.rank(), peer_,
                      listener_.address_of(peer_).address(), why);
}

bool TcpChannel::may_be_on_its_way() {
  // Within a host, all connections and data made before an end are visible before it.
  if (listener_.address_of(peer_).is_on_this_host) return false;
  const auto now = Clock::now();
  if (ended_ == Clock::time_point{}) {
    ended_ = now;
    listener_.wake_at(now + listener_.on_its_way());
  }
  return now - ended_ < listener_.on_its_way();
}

}  // namespace kolo::inline v0::tcp
