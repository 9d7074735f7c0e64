#include "transports/tcp/channel.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "transports/check.h"
#include "transports/error.h"

namespace kolo::tcp {

namespace {

// What travels for a segment of no bytes.
constexpr std::byte kNothing{0};

bool is_not_now(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

TcpChannel::TcpChannel(posix::Descriptor socket, int rank, int peer, std::string address,
                       std::size_t segment_bytes)
    : socket_(std::move(socket)), rank_(rank), peer_(peer), address_(std::move(address)) {
  capabilities_.segment_bytes = segment_bytes;
  capabilities_.preferred_segment_bytes = segment_bytes;
  // The kernel overlaps what it copies by itself: of 32 KiB cut in four, all-reduce took 31 us, and
  // 14 whole; of chunks of 256 KiB, 192 and 120.
  capabilities_.shortest_segment_bytes = segment_bytes;
  capabilities_.credit_segments = static_cast<int>(kQueueLength);
  capabilities_.zero_copy_bytes = 1;  // no copy but the kernel's own, at any size
  capabilities_.latency_us = 4;
  capabilities_.bandwidth_GBps = 4;
}

// --- out ---

std::byte* TcpChannel::slot(std::size_t index) {
  const std::size_t stride = slot_stride(capabilities_.segment_bytes);
  if (!slots_) slots_ = allocate_aligned(stride * kQueueLength);
  return slots_.get() + index * stride;
}

std::byte* TcpChannel::reserve(std::size_t bytes) {
  throw_if_lost();
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  if (queued_ == kQueueLength) flush();
  if (queued_ == kQueueLength) return nullptr;
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
  throw_if_lost();
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
  queue_[(head_ + queued_) % kQueueLength] = bytes > 0 ? Piece{data, bytes} : Piece{&kNothing, 1};
  ++queued_;
  const bool waits_for_next = (flags & kMore) != 0 && queued_ < kQueueLength;
  if (!waits_for_next) flush();
}

void TcpChannel::flush() {
  while (queued_ > 0) {
    throw_if_lost();
    std::array<iovec, kQueueLength> pieces;
    for (std::size_t i = 0; i < queued_; ++i) {
      const Piece& piece = queue_[(head_ + i) % kQueueLength];
      pieces[i] = {const_cast<std::byte*>(piece.data), piece.bytes};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = queued_;
    ++statistics_.system_calls;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (is_not_now(errno)) return;
      lose("send to", errno);
    }
    pop_sent(static_cast<std::size_t>(sent));
  }
  head_ = 0;  // the first slot again, which is still in the cache
}

void TcpChannel::pop_sent(std::size_t bytes) {
  while (bytes > 0) {
    Piece& piece = queue_[head_];
    const std::size_t part = std::min(bytes, piece.bytes);
    piece.data += part;
    piece.bytes -= part;
    bytes -= part;
    if (piece.bytes > 0) return;
    head_ = (head_ + 1) % kQueueLength;
    --queued_;
  }
}

// --- in ---

const std::byte* TcpChannel::view(std::size_t bytes) {
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  if (is_viewing_) return segment_.get();
  if (!segment_) segment_ = allocate_aligned(slot_stride(capabilities_.segment_bytes));
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

bool TcpChannel::receive(std::span<std::byte> into) {
  check(into.size() <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
  check(!is_viewing_, "receive() before the view was released");
  std::byte nothing{};
  if (!fill(into.empty() ? &nothing : into.data(), into.size())) return false;
  finish_segment(into.size());
  return true;
}

void TcpChannel::finish_segment(std::size_t bytes) {
  filled_ = 0;
  statistics_.bytes_received += bytes;
  ++statistics_.segments_received;
}

// True once the whole segment of `bytes` lies at `into`.
bool TcpChannel::fill(std::byte* into, std::size_t bytes) {
  const std::size_t on_wire = std::max<std::size_t>(bytes, 1);
  if (filled_ < on_wire) take_ahead(into, on_wire);
  if (filled_ < on_wire) receive_more(into, on_wire);
  if (filled_ == on_wire) return true;
  if (queued_ > 0) flush();  // the peer may wait for it
  return false;
}

void TcpChannel::take_ahead(std::byte* into, std::size_t bytes) {
  const std::size_t part = std::min(bytes - filled_, ahead_end_ - ahead_begin_);
  if (part == 0) return;
  std::memcpy(into + filled_, ahead_.data() + ahead_begin_, part);
  filled_ += part;
  ahead_begin_ += part;
}

// Only while nothing is left ahead.
void TcpChannel::receive_more(std::byte* into, std::size_t bytes) {
  throw_if_lost();
  std::array<iovec, 2> pieces = {
      {{into + filled_, bytes - filled_}, {ahead_.data(), ahead_.size()}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  ++statistics_.system_calls;
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (got < 0 && is_not_now(errno)) return;
  if (got <= 0) lose("receive from", got == 0 ? 0 : errno);
  const auto received = static_cast<std::size_t>(got);
  const std::size_t part = std::min(received, bytes - filled_);
  filled_ += part;
  ahead_begin_ = 0;
  ahead_end_ = received - part;
}

// --- the end ---

void TcpChannel::close() noexcept {
  if (is_closed_) return;
  is_closed_ = true;
  queued_ = 0;
  ::shutdown(socket_.get(), SHUT_WR);
  socket_.close();
}

void TcpChannel::throw_if_lost() const {
  if (!lost_.empty()) throw Error(ErrorCode::kPeerLost, peer_, lost_);
  if (is_closed_) {
    throw Error(ErrorCode::kAborted, kNoPeer,
                fmt::format("rank {}: this transport was closed", rank_));
  }
}

void TcpChannel::lose(const char* operation, int error) {
  lost_ = fmt::format(
      "rank {}: cannot {} rank {} at {} (tcp): {}; most likely its process has ended: look at its "
      "last output",
      rank_, operation, peer_, address_,
      error == 0 ? "it closed the connection" : posix::error_text(error));
  throw_if_lost();
  std::terminate();  // not reached: lost_ is set
}

}  // namespace kolo::tcp
