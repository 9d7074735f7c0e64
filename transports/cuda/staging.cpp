#include "transports/cuda/staging.h"

#include <algorithm>

namespace kolo::inline v0::cuda {

namespace {

std::uint64_t pieces_of(std::size_t bytes, std::size_t segment_bytes) {
  return std::max<std::uint64_t>(1, (bytes + segment_bytes - 1) / segment_bytes);
}

// Pieces that are contiguous in memory and in the ring, for one copy.
template <typename Byte>
struct Run {
  Byte* begin = nullptr;
  std::size_t bytes = 0;
  std::uint64_t pieces = 0;

  // Takes the transfer's next piece, if it continues the run.
  template <typename Transfer>
  bool take(Transfer& transfer, std::size_t segment_bytes) {
    if (pieces == 0) begin = transfer.rest.data();
    const bool goes_on = transfer.rest.data() == begin + bytes && bytes == pieces * segment_bytes;
    if (!goes_on) return false;
    const std::size_t piece = std::min(segment_bytes, transfer.rest.size());
    transfer.rest = transfer.rest.subspan(piece);
    bytes += piece;
    ++pieces;
    return true;
  }
};

}  // namespace

// --- sending ---

std::uint64_t Outgoing::add(std::span<const std::byte> data, unsigned flags) {
  added_ += pieces_of(data.size(), ring_.segment_bytes);
  transfers_.push_back({data, added_, flags});
  return added_;
}

std::uint64_t Outgoing::copied() const {
  return std::min(words_.copied.load(std::memory_order_acquire), given_);
}

bool Outgoing::pump(Channel& host, bool may_send) {
  bool has_moved = reclaim(host);
  has_moved |= copy();
  if (may_send) has_moved |= send(host);
  return has_moved;
}

bool Outgoing::reclaim(Channel& host) {
  if (drained_ == sent_ || !host.is_drained()) return false;
  drained_ = sent_;
  return true;
}

// A channel reports that it is drained only as a whole. So at most half of the slots are given to
// it before it is drained, and the others are filled meanwhile.
bool Outgoing::send(Channel& host) {
  const std::uint64_t before = sent_;
  for (const std::uint64_t until = copied(); sent_ < until; ++sent_) {
    if (sent_ - drained_ >= half() && !reclaim(host)) break;
    const std::uint64_t slot = sent_ % ring_.count;
    if (!host.send({ring_.slot(sent_), lengths_[slot]}, flags_[slot])) break;
  }
  return sent_ != before;
}

bool Outgoing::copy() {
  const std::uint64_t room = ring_.count - (given_ - drained_);
  const std::uint64_t most = std::min({room, ring_.run_from(given_), half()});
  Run<const std::byte> run;
  while (run.pieces < most && !transfers_.empty()) {
    Transfer& next = transfers_.front();
    const std::size_t before = run.bytes;
    if (!is_handed(next) || !run.take(next, ring_.segment_bytes)) break;
    const std::uint64_t piece = given_ + run.pieces - 1;
    lengths_[piece % ring_.count] = run.bytes - before;
    flags_[piece % ring_.count] = next.flags;
    if (piece + 1 == next.end) transfers_.pop_front();
  }
  if (run.pieces == 0) return false;
  copies_.copy(ring_.seen_slot(given_), run.begin, run.bytes, copied_at_, given_ + run.pieces);
  given_ += run.pieces;
  return true;
}

bool Outgoing::has_sent_all_handed() const {
  return sent_ == given_ && (transfers_.empty() || !is_handed(transfers_.front()));
}

bool Outgoing::watches_device() const {
  const bool has_room = given_ - drained_ < ring_.count;
  return copied() < given_ || (!transfers_.empty() && has_room);
}

// --- receiving ---

std::uint64_t Incoming::end_of(std::size_t bytes) const {
  return added_ + pieces_of(bytes, ring_.segment_bytes);
}

std::uint64_t Incoming::add(std::span<std::byte> into, const std::atomic<std::uint64_t>& gate,
                            std::uint64_t value) {
  added_ = end_of(into.size());
  expected_.push_back({into.size(), added_});
  landings_.push_back({into, added_, &gate, value});
  return added_;
}

std::uint64_t Incoming::landed() const {
  return std::min(words_.landed.load(std::memory_order_acquire), given_);
}

bool Incoming::pump(Channel& host, bool may_receive) {
  bool has_moved = may_receive && receive(host);
  has_moved |= land();
  return has_moved;
}

bool Incoming::receive(Channel& host) {
  const std::uint64_t before = arrived_;
  for (const std::uint64_t until = landed() + ring_.count; !expected_.empty() && arrived_ < until;
       ++arrived_) {
    Expected& next = expected_.front();
    const std::size_t piece = std::min(ring_.segment_bytes, next.rest);
    if (!host.receive({ring_.slot(arrived_), piece}, kPlain)) break;
    next.rest -= piece;
    if (arrived_ + 1 == next.end) expected_.pop_front();
  }
  return arrived_ != before;
}

bool Incoming::land() {
  const std::uint64_t half = ring_.count / 2;
  const std::uint64_t most = std::min({arrived_ - given_, ring_.run_from(given_), half});
  Run<std::byte> run;
  while (run.pieces < most && !landings_.empty()) {
    Landing& next = landings_.front();
    if (!next.is_open() || !run.take(next, ring_.segment_bytes)) break;
    if (given_ + run.pieces == next.end) landings_.pop_front();
  }
  if (run.pieces == 0) return false;
  copies_.copy(run.begin, ring_.seen_slot(given_), run.bytes, landed_at_, given_ + run.pieces);
  given_ += run.pieces;
  return true;
}

bool Incoming::watches_device() const {
  const bool has_room = arrived_ - landed() < ring_.count;
  return given_ < arrived_ || (!expected_.empty() && !has_room);
}

}  // namespace kolo::inline v0::cuda
