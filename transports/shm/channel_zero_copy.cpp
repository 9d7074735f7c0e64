// Part of ShmChannel: zero copy and single copy, by offers of memory instead of slots.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "transports/base/check.h"
#include "transports/error.h"
#include "transports/posix/host/streaming_copy.h"
#include "transports/shm/channel.h"

namespace kolo::inline v0::shm {

// --- the owner of the memory ---

bool ShmChannel::send_long(std::span<const std::byte> data, unsigned flags) {
  check_alive();
  if (!has_region()) is_begun();
  if (data.size() >= kShortestOffer) {
    if (const auto offer = offer_of(data, flags)) return send_offer(data, *offer, flags);
  }
  if ((flags & kAnswered) != 0) return Channel::send_copy(data, flags);
  return send_chosen(data, flags, kEveryWay);
}

bool ShmChannel::send_copy(std::span<const std::byte> data, unsigned flags) {
  if (data.size() < kShortestChoice || (flags & kAnswered) != 0)
    return Channel::send_copy(data, flags);
  check_alive();
  if (!has_region()) is_begun();
  return send_chosen(data, flags, kEveryWay & ~way_bit(Way::kSingle));
}

// The choice stays until its segment has been sent.
bool ShmChannel::send_chosen(std::span<const std::byte> data, unsigned flags, unsigned allowed) {
  if (!has_choice_) choice_ = choose(data.size(), flags, allowed);
  has_choice_ = true;
  if (choice_.way == Way::kSingle) {
    const Offer offer{0, reinterpret_cast<std::uintptr_t>(data.data())};
    if (!send_offer(data, offer, flags)) return false;
  } else {
    std::byte* slot = reserve(data.size());
    if (slot == nullptr) return false;
    const auto since = choice_.is_timed ? Clock::now() : Clock::time_point{};
    if (choice_.way == Way::kStreamed) {
      posix::streaming_copy(slot, data.data(), data.size());
    } else {
      std::memcpy(slot, data.data(), data.size());
    }
    if (choice_.is_timed) {
      buffers().chooser.add(copy_class(data.size(), (flags & kReceived) != 0), choice_.way,
                            data.size(), Clock::now() - since);
    }
    commit(flags);
  }
  choice_ = {};
  has_choice_ = false;
  return true;
}

CopyChooser::Choice ShmChannel::choose(std::size_t bytes, unsigned flags, unsigned allowed) {
  const bool is_received = (flags & kReceived) != 0;
  if (!posix::has_streaming_stores()) allowed &= ~way_bit(Way::kStreamed);
  if (!is_received || single_copy_bytes_ == 0 || bytes < single_copy_bytes_ ||
      theirs_->reads.load(std::memory_order_acquire) == 0)
    allowed &= ~way_bit(Way::kSingle);
  return buffers().chooser.choose(
      copy_class(bytes, is_received), allowed, [this](std::size_t copy_class, Way way) -> unsigned {
        const std::size_t index = PublishedTimes::index(copy_class, way);
        const auto word = theirs_->times[index / 4].load(std::memory_order_relaxed);
        return (word >> (16 * (index % 4))) & 0xffff;
      });
}

std::optional<Offer> ShmChannel::offer_of(std::span<const std::byte> data, unsigned flags) {
  if ((flags & kAnswered) != 0 && (flags & kLent) == 0) return std::nullopt;
  look_at_regions();
  for (const RegionPlace& region : known_regions_) {
    if (!region.holds(data.data(), data.size())) continue;
    if (!tell(region)) break;
    return Offer{region.id, static_cast<std::uint64_t>(data.data() - region.data)};
  }
  return std::nullopt;
}

// Updates the list of regions and tells the peer about freed ones. If the socket is full, a later
// call tells it.
void ShmChannel::look_at_regions() {
  if (regions_version_ == regions_.version()) [[likely]]
    return;
  regions_version_ = regions_.version();
  known_regions_ = regions_.places();
  std::erase_if(told_regions_, [this](std::uint64_t id) {
    const bool is_there = std::any_of(known_regions_.begin(), known_regions_.end(),
                                      [id](const RegionPlace& region) { return region.id == id; });
    if (is_there) return false;
    const RegionMessage message{1, id, 0};
    ++statistics_.system_calls;
    const bool is_told =
        posix::send_message(sockets_[0].get(), std::as_bytes(std::span(&message, 1)));
    if (!is_told) --regions_version_;
    return is_told;
  });
}

// Passes the region to the peer, once. False if the socket is full; then this segment uses a slot.
bool ShmChannel::tell(const RegionPlace& region) {
  const auto told = std::find(told_regions_.begin(), told_regions_.end(), region.id);
  if (told != told_regions_.end()) return true;
  const RegionMessage message{0, region.id, region.bytes};
  ++statistics_.system_calls;
  const bool is_told = regions_.with_descriptor(region.id, [&](int descriptor) {
    return posix::send_message(sockets_[0].get(), std::as_bytes(std::span(&message, 1)),
                               descriptor);
  });
  if (is_told) told_regions_.push_back(region.id);
  return is_told;
}

bool ShmChannel::send_offer(std::span<const std::byte> data, const Offer& offer, unsigned flags) {
  check_alive();
  check(reserved_ == Open::kNone, "shm: a slot is reserved already; commit it first");
  check(data.size() <= pair_.layout.segment_bytes(), "shm: a segment is longer than segment_bytes");
  if (has_ended_) fail();
  const bool is_answered = (flags & kAnswered) != 0;
  const bool has_credit =
      has_frame_credit() && (!is_answered || answers_asked_ - answers_read_ < kMostSlots);
  if (!has_credit) {
    send_held();
    return not_now(kCredit) != nullptr;
  }
  wanted_ &= ~std::uint64_t{kCredit};
  if (held_.tiny_words * 8 + sizeof offer > kFrameBytes) publish(held_);
  Announcement announcement = held_;
  announcement.has_slot = true;
  announcement.is_offered = true;
  announcement.is_answered = is_answered;
  announcement.is_timed = choice_.is_timed;
  announcement.is_received = (flags & kReceived) != 0;
  announcement.slot_bytes = data.size();
  if (is_answered) {
    // kLent allows the peer to write here, although the span is const.
    lent_[answers_asked_ % kMostSlots] = {const_cast<std::byte*>(data.data()), data.size()};
    ++answers_asked_;
  }
  ++statistics_.segments_sent;
  statistics_.bytes_sent += data.size();
  publish(announcement, offer);
  return true;
}

bool ShmChannel::is_drained() {
  if (held_.tiny_segments > 0) return false;
  if (last_offer_ <= consumed_) return true;
  check_alive();
  collect_consumed();
  if (last_offer_ <= consumed_) {
    wanted_ &= ~std::uint64_t{kCredit};
    return true;
  }
  not_now(kCredit);
  return false;
}

// A peer that has not noticed the end may still write to lent memory, so its pages are made
// private. An error may have freed that memory already.
void ShmChannel::take_back_lent() noexcept {
  for (; answers_read_ < answers_asked_; ++answers_read_) {
    const auto lent = lent_[answers_read_ % kMostSlots];
    if (!lent.empty()) regions_.make_private(lent);
  }
}

// --- the reader ---

posix::Received ShmChannel::hear() {
  posix::Descriptor& socket = sockets_[1].is_open() ? sockets_[1] : sockets_[0];
  RegionMessage message;
  auto heard = posix::receive_message(socket.get(), std::as_writable_bytes(std::span(&message, 1)));
  if (heard.what == posix::Received::kClosed) {
    for (auto& each : sockets_) each.close();
  }
  if (heard.what == posix::Received::kMessage && heard.bytes == sizeof message)
    take_region(message, std::move(heard.passed));
  return heard.what;
}

void ShmChannel::take_region(const RegionMessage& message, posix::Descriptor region) {
  const bool is_in_use = has_frame_ && current_.is_offered && offered_ != nullptr;
  if (is_in_use && current_offer_.region == message.id)
    fail_protocol("took back memory that it had offered, and that is in use");
  if (message.is_gone != 0) return peer_memory_.unmap(message.id);
  try {
    peer_memory_.map(message.id, std::move(region), message.bytes);
  } catch (const Error& error) {
    kill(ErrorCode::kUnavailable,
         fmt::format("rank {}: cannot map the memory that {} shares: {}; descriptors (ulimit -n) "
                     "or memory may be short",
                     pair_.rank, pair_.peer_name, error.what()));
    fail();
  }
}

// Returns the offered segment: in the peer's region, or in a copy.
std::byte* ShmChannel::find_offered(std::size_t bytes) {
  if (offered_ != nullptr) return offered_;
  if (current_offer_.region != 0) {
    // The peer sent the region's descriptor before it published this frame.
    while ((offered_ = peer_memory_.find(current_offer_, bytes)) == nullptr) {
      const auto heard = hear();
      if (heard == posix::Received::kMessage) continue;
      if (heard == posix::Received::kClosed) {
        lose_peer();
        check_offer_stands();
      }
      fail_protocol("offered memory that it does not share");
    }
    return offered_;
  }
  std::byte* to = into_;
  if (to == nullptr) {
    if (copied_ == nullptr) copied_ = allocate_aligned(pair_.layout.segment_bytes());
    to = copied_.get();
  }
  ++statistics_.system_calls;
  const int failure = peer_memory_.read(current_offer_.address, {to, bytes});
  if (failure != 0) {
    check_offer_stands();
    const std::string who = fmt::format("rank {}: {}", pair_.rank, pair_.peer_name);
    if (failure == ESRCH) {
      kill(ErrorCode::kPeerLost, who + " is gone: it ended while its memory was read (shm)");
    } else {
      kill(ErrorCode::kSystem,
           fmt::format("{}: its memory could not be read ({}): set KOLO_SHM_SINGLE_COPY=0 to do "
                       "without",
                       who, std::generic_category().message(failure)));
    }
    fail();
  }
  return offered_ = to;
}

// For a segment that the sender wants timed. One that is opened more than once is not timed.
void ShmChannel::begin_timing() {
  timed_since_ = timed_since_ == Clock::time_point{} ? Clock::now() : Clock::time_point::max();
}

void ShmChannel::end_timing() {
  const auto since = std::exchange(timed_since_, Clock::time_point{});
  if (since == Clock::time_point::max() || since == Clock::time_point{}) return;
  const Way way = current_.is_offered    ? Way::kSingle
                  : current_.is_streamed ? Way::kStreamed
                                         : Way::kPlain;
  const std::size_t index_of_class = copy_class(open_bytes_, current_.is_received);
  const std::uint64_t time =
      buffers().copy_times.add(index_of_class, way, open_bytes_, Clock::now() - since);
  const std::size_t index = PublishedTimes::index(index_of_class, way);
  SharedWord& word = mine_->times[index / 4];
  const unsigned shift = 16 * (index % 4);
  word.store(
      (word.load(std::memory_order_relaxed) & ~(std::uint64_t{0xffff} << shift)) | time << shift,
      std::memory_order_relaxed);
}

// Fails if the owner has closed: it may have changed the memory before it was read.
void ShmChannel::check_offer_stands() {
  // A read-modify-write, not a load: earlier reads of the memory must not move behind it.
  if (theirs_->closed.fetch_or(0, std::memory_order_acq_rel) == 0) [[likely]]
    return;
  kill(ErrorCode::kPeerLost,
       fmt::format("rank {}: {} closed its shm channel while a segment of its "
                   "memory was on its way: it failed, or ended early",
                   pair_.rank, pair_.peer_name));
  fail();
}

}  // namespace kolo::inline v0::shm
