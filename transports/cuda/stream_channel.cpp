#include "transports/cuda/stream_channel.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <utility>

#include "transports/base/aligned_memory.h"
#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0::cuda {

namespace {

constexpr Address kArrived = offsetof(Block, arrived);
constexpr Address kFreed = offsetof(Block, freed);
constexpr std::size_t kMostImports = 64;

}  // namespace

DeviceChannel::DeviceChannel(const Device& device, const RankResources& rank, const Link& link)
    : device_(device),
      exports_(rank.exports),
      backlog_(rank.backlog),
      writes_(rank.writes),
      link_(link),
      batches_(device),
      imports_(device, fmt::format("rank {}", link.peer), link.is_same_process, kMostImports,
               [this] { return batches_.has_come(); }),
      captured_(device, writes_, link_),
      landings_(device) {
  capabilities_.segment_bytes = link.segment_bytes;
  capabilities_.preferred_segment_bytes = link.segment_bytes;
  capabilities_.straight_segment_bytes = std::size_t{64} << 20;
  capabilities_.credit_segments = static_cast<int>(link.slots);
  capabilities_.latency_us = 5;
  capabilities_.bandwidth_GBps = 100;
}

std::byte* DeviceChannel::slot(std::byte* slots, std::uint64_t piece) const {
  return slots + (piece % link_.slots) * slot_stride(link_.segment_bytes);
}

// --- preconditions and errors ---

void DeviceChannel::require_open() {
  if (!is_closed_ && why_dead_.empty()) [[likely]]
    return;
  if (!is_closed_) throw Error(ErrorCode::kSystem, kNoPeer, why_dead_);
  throw Error(ErrorCode::kAborted, kNoPeer,
              fmt::format("rank {}: this transport was closed; do not use results that its "
                          "streams had not finished",
                          link_.rank));
}

void DeviceChannel::require_batch(void* stream) {
  require_open();
  if (captured_.is_begun()) return captured_.require(stream);
  batches_.require(stream);
}

// For a batch of captured work. A peer that has ended cannot take part in a replay.
template <typename Body>
auto DeviceChannel::on_captured(const Body& body) {
  fail_if_lost("capture work with", true);
  return on_device(body);
}

void DeviceChannel::require_slots(const char* operation) const {
  check(!captured_.is_begun(),
        fmt::format("{} on a stream that is being captured into a graph: use slots there (reserve, "
                    "view)",
                    operation));
}

void DeviceChannel::fail_if_lost(const char* operation, bool is_hopeless) {
  const auto closing = static_cast<Closing>(link_.own->is_closing.load(std::memory_order_acquire));
  if (closing == Closing::kNot && !is_peer_dead_.load(std::memory_order_acquire)) return;
  if (!is_hopeless && closing != Closing::kAborted) return;
  throw Error(ErrorCode::kPeerLost, link_.peer,
              fmt::format("rank {}: cannot {} rank {} on a stream (cuda_ipc): {}; see the output "
                          "of rank {}",
                          link_.rank, operation, link_.peer,
                          closing == Closing::kNot ? "its process is gone"
                          : closing == Closing::kDone
                              ? "it has closed its transport"
                              : "it closed its transport while its streams were at work",
                          link_.peer));
}

// A freed word has a value above all counts, and is_broken_ was set before.
bool DeviceChannel::lacks_arrived(std::uint64_t pieces) const noexcept {
  return link_.own->arrived.load(std::memory_order_acquire) < pieces || is_broken_.load();
}

bool DeviceChannel::lacks_freed(std::uint64_t pieces) const noexcept {
  return link_.own->freed.load(std::memory_order_acquire) < pieces || is_broken_.load();
}

void DeviceChannel::require_whole() {
  fail_if_lost("trust the data from", is_broken_.load());
  const std::uint32_t lost = link_.own->lost.load(std::memory_order_acquire);
  if (lost == 0) return;
  throw Error(
      ErrorCode::kPeerLost, static_cast<int>(lost) - 1,
      fmt::format("rank {}: cannot trust the data from rank {} on a stream (cuda_ipc): rank "
                  "{} has ended, and rank {} waited for it; see the output of rank {}",
                  link_.rank, link_.peer, lost - 1, link_.peer, lost - 1));
}

void DeviceChannel::begin(void* stream) {
  require_open();
  check(!captured_.is_begun(), "begin() before the batch begun last has ended");
  const std::uint64_t capture = device_.capture_of(stream);
  if (capture != 0) {
    check(!batches_.is_begun(), "begin() before the batch begun last has ended");
    return on_captured([&] { captured_.begin(stream, capture); });
  }
  if (batches_.begin(stream, imports_.size() > 0)) imports_.finish(taken_by_batch_);
}

void DeviceChannel::end(void* stream) {
  require_batch(stream);
  on_device([&] { writes_.release(); });
  if (captured_.is_begun()) return on_captured([&] { captured_.end(); });
  batches_.end();
  taken_by_batch_ = taken_;
  imports_.give(taken_);
}

void DeviceChannel::combine_words(void* stream) {
  require_batch(stream);
  writes_.hold(stream);
}

void DeviceChannel::flush(void* stream) {
  require_batch(stream);
  on_device([&] { writes_.flush(); });
}

// --- pieces ---

// The wait is for a word that the peer writes.
void DeviceChannel::wait(Address word, std::uint64_t pieces, void* stream) {
  batches_.wait([&] { writes_.wait(wait_for_word(link_.own_words + word, pieces), stream); });
}

void DeviceChannel::publish(Address word, std::uint64_t pieces, void* stream) {
  on_device([&] { writes_.write(write_word(link_.their_words + word, pieces), stream); });
}

bool DeviceChannel::is_full() {
  const bool is_full = backlog_.is_full();
  has_said_not_now_ |= is_full;
  return is_full;
}

void DeviceChannel::wait_for_slot(void* stream) {
  fail_if_lost("send to", true);
  on_device([&] { backlog_.add(stream); });
  if (sent_ < link_.slots) return;
  const std::uint64_t pieces = sent_ + 1 - link_.slots;
  if (!lacks_freed(pieces)) return;
  waits_for_freed_.store(pieces);
  on_device([&] { wait(kFreed, pieces, stream); });
}

void DeviceChannel::publish_arrived(void* stream) {
  publish(kArrived, sent_ + 1, stream);
  ++sent_;
}

// Stream that publishes a piece, ordered after all current work of `stream`.
Stream DeviceChannel::sending(void* stream) {
  return aside_ ? on_device([&] { return aside_->after(stream); }) : stream;
}

void DeviceChannel::has_sent() {
  if (aside_) on_device([&] { aside_->mark(); });
}

void DeviceChannel::wait_for_arrival(void* stream, std::uint64_t pieces) {
  fail_if_lost("receive from", lacks_arrived(pieces));
  waits_for_arrived_.store(pieces);
  on_device([&] {
    backlog_.add(stream);
    wait(kArrived, pieces, stream);
  });
}

void DeviceChannel::publish_freed(void* stream) {
  publish(kFreed, taken_ + 1, stream);
  ++taken_;
}

void DeviceChannel::copy(void* stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  on_device([&] {
    writes_.flush();
    device_.copy(to, from, bytes, stream);
  });
}

// Null: not now.
std::byte* DeviceChannel::map_straight(const Exported& place, std::size_t bytes) {
  fail_if_lost("receive from", is_unmapped_);
  std::byte* const mapped = on_device([&] { return imports_.map(place, bytes, taken_ + 1); });
  has_said_not_now_ |= mapped == nullptr;
  return mapped;
}

// --- slots ---

std::byte* DeviceChannel::reserve(void* stream, std::size_t bytes) {
  require_batch(stream);
  check(bytes <= link_.segment_bytes, "a segment is longer than Capabilities::segment_bytes");
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  std::byte* place = slot(link_.their_slots, sent_);
  if (captured_.is_begun()) {
    place = on_captured([&] { return captured_.reserve(); });
  } else {
    if (is_full()) return nullptr;
    wait_for_slot(stream);
  }
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return place;
}

void DeviceChannel::commit(void* stream, unsigned flags) {
  require_batch(stream);
  check(is_reserved_, "commit() without a reserved slot");
  check((flags & kAnswered) == 0, "kAnswered is for host memory; leave it out on a stream");
  is_reserved_ = false;
  if (captured_.is_begun()) {
    on_captured([&] { captured_.commit(); });
  } else {
    publish_arrived(sending(stream));
    has_sent();
  }
  statistics_.bytes_sent += reserved_bytes_;
  ++statistics_.segments_sent;
}

const std::byte* DeviceChannel::view(void* stream, std::size_t bytes) {
  require_batch(stream);
  check(bytes <= link_.segment_bytes, "a segment is longer than Capabilities::segment_bytes");
  if (is_viewing_) return viewed_at_;
  if (captured_.is_begun()) {
    viewed_at_ = on_captured([&] { return captured_.view(); });
  } else {
    if (is_full()) return nullptr;
    wait_for_arrival(stream, taken_ + 1);
    viewed_at_ = slot(link_.own_slots, taken_);
  }
  is_viewing_ = true;
  viewed_ = Place::kSlot;
  viewed_bytes_ = bytes;
  return viewed_at_;
}

void DeviceChannel::release(void* stream) {
  require_batch(stream);
  check(is_viewing_, "release() without a view");
  is_viewing_ = false;
  if (captured_.is_begun()) {
    on_captured([&] { captured_.release(); });
  } else if (viewed_ != Place::kLanding) {
    publish_freed(stream);
  }
  if (std::exchange(answer_, nullptr) != nullptr) statistics_.bytes_sent += viewed_bytes_;
  count_received(viewed_bytes_);
}

void DeviceChannel::count_received(std::size_t bytes) {
  statistics_.bytes_received += bytes;
  ++statistics_.segments_received;
}

void DeviceChannel::drain(void* stream) {
  require_batch(stream);
  if (captured_.is_begun()) return on_captured([&] { captured_.drain(); });
  if (aside_) {
    on_device([&] {
      writes_.flush();
      aside_->finish(stream);
    });
  }
  if (lent_ == 0) return;
  fail_if_lost("drain the data sent to", lacks_freed(lent_));
  waits_for_freed_.store(std::max(waits_for_freed_.load(), lent_));
  on_device([&] { wait(kFreed, lent_, stream); });
}

}  // namespace kolo::inline v0::cuda
