// Zero-copy calls of a stream channel, and answers in place. See stream_channel.h.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "transports/base/check.h"
#include "transports/cuda/stream_channel.h"
#include "transports/error.h"

namespace kolo::inline v0::cuda {

bool DeviceChannel::send(void* stream, std::span<const std::byte> data, unsigned flags) {
  check((flags & kAnswered) == 0, "kAnswered is for host memory; leave it out on a stream");
  Announcement announcement;
  return announce_and_send(stream, data, announcement);
}

bool DeviceChannel::announce_and_send(void* stream, std::span<const std::byte> data,
                                      Announcement& announcement) {
  require_batch(stream);
  require_slots("send");
  check(!is_reserved_, "send() before the slot reserved last was committed");
  fail_if_lost("send to", true);
  if (is_full()) return false;
  if (announced_ - link_.own->read.load(std::memory_order_acquire) >= kAnnouncements) {
    has_said_not_now_ = true;
    return false;
  }
  announce(announcement, data);
  const bool is_of_many = announcement.is_straight == 0 && data.size() > link_.segment_bytes;
  if (is_of_many && !aside_) on_device([&] { aside_.emplace(device_); });
  const Stream sender = sending(stream);
  if (announcement.is_straight != 0) {
    wait_for_slot(sender);
    publish_arrived(sender);
    lent_ = sent_;
  } else {
    send_through_slots(sender, data);
  }
  has_sent();
  statistics_.bytes_sent += data.size();
  ++statistics_.segments_sent;
  return true;
}

void DeviceChannel::announce(Announcement& announcement, std::span<const std::byte> data) {
  announcement.bytes = data.size();
  if (!data.empty()) {
    if (const auto place = exports_.find(data.data(), data.size())) {
      announcement.is_straight = 1;
      announcement.place = *place;
    } else {
      // The driver may copy such memory at any time, and block the host meanwhile.
      check(device_.is_known(data.data()),
            "send on a stream of host memory that no device reaches: register it with the driver, "
            "or use the channel's own send");
    }
  }
  announcement.is_offered &= announcement.is_straight;
  exports_.look_for_gone();
  announcement.gone = exports_.next_gone(seen_gone_);
  link_.theirs->ring[announced_ % kAnnouncements] = announcement;
  link_.theirs->announced.store(++announced_, std::memory_order_release);
}

void DeviceChannel::send_through_slots(void* stream, std::span<const std::byte> data) {
  do {
    const auto piece = data.first(std::min(data.size(), link_.segment_bytes));
    wait_for_slot(stream);
    copy(stream, slot(link_.their_slots, sent_), piece.data(), piece.size());
    publish_arrived(stream);
    data = data.subspan(piece.size());
  } while (!data.empty());
}

void DeviceChannel::receive_through_slots(void* stream, std::span<std::byte> into) {
  do {
    const auto piece = into.first(std::min(into.size(), link_.segment_bytes));
    wait_for_arrival(stream, taken_ + 1);
    copy(stream, piece.data(), slot(link_.own_slots, taken_), piece.size());
    publish_freed(stream);
    into = into.subspan(piece.size());
  } while (!into.empty());
}

// Reads the next announcement. Leaves it in the ring until take_announcement(). False: none yet.
bool DeviceChannel::find_announcement(Announcement& announcement, std::size_t bytes) {
  check(!is_viewing_, "the segment viewed last has not been released");
  if (link_.own->announced.load(std::memory_order_acquire) == read_) {
    fail_if_lost("receive from", true);
    has_said_not_now_ = true;
    return false;
  }
  announcement = link_.own->ring[read_ % kAnnouncements];
  if (announcement.gone != 0) imports_.forget(announcement.gone);
  if (announcement.bytes == bytes) return true;
  why_dead_ = fmt::format(
      "rank {}: rank {} sends {} bytes on a stream, expected {}: both must run the same "
      "schedule",
      link_.rank, link_.peer, announcement.bytes, bytes);
  throw Error(ErrorCode::kMismatch, link_.peer, why_dead_);
}

void DeviceChannel::take_announcement() {
  link_.theirs->read.store(++read_, std::memory_order_release);
}

bool DeviceChannel::receive(void* stream, std::span<std::byte> into, unsigned) {
  require_batch(stream);
  require_slots("receive");
  check(into.empty() || device_.is_known(into.data()),
        "receive on a stream into host memory that no device reaches: register it with the driver, "
        "or use the channel's own receive");
  Announcement announcement;
  if (is_full() || !find_announcement(announcement, into.size())) return false;
  if (announcement.is_straight == 0) {
    take_announcement();
    receive_through_slots(stream, into);
  } else {
    const std::byte* const from = map_straight(announcement.place, into.size());
    if (from == nullptr) return false;
    take_announcement();
    wait_for_arrival(stream, taken_ + 1);
    copy(stream, into.data(), from, into.size());
    publish_freed(stream);
  }
  count_received(into.size());
  return true;
}

const std::byte* DeviceChannel::view_sent(void* stream, std::size_t bytes) {
  require_batch(stream);
  require_slots("view_sent");
  if (is_viewing_) return viewed_at_;
  Announcement announcement;
  if (is_full() || !find_announcement(announcement, bytes)) return nullptr;
  std::byte* mapped = nullptr;
  std::byte* answer = nullptr;
  if (announcement.is_straight != 0) {
    mapped = map_straight(announcement.place, bytes);
    if (mapped == nullptr) return nullptr;
  }
  if (announcement.is_offered != 0) {
    answer = map_straight(announcement.answer, bytes);
    if (answer == nullptr) return nullptr;
  }
  take_announcement();
  answer_ = answer;
  viewed_bytes_ = bytes;
  if (announcement.is_straight != 0) {
    viewed_ = Place::kMapped;
    viewed_at_ = mapped;
    wait_for_arrival(stream, taken_ + 1);
  } else if (bytes <= link_.segment_bytes) {
    viewed_ = Place::kSlot;
    viewed_at_ = slot(link_.own_slots, taken_);
    wait_for_arrival(stream, taken_ + 1);
  } else {
    viewed_ = Place::kLanding;
    std::byte* const whole = on_device([&] { return landings_.find(bytes, stream); });
    viewed_at_ = whole;
    receive_through_slots(stream, {whole, bytes});
  }
  is_viewing_ = true;
  return viewed_at_;
}

// --- answers ---

bool DeviceChannel::send(void* stream, std::span<const std::byte> data, std::span<std::byte> into) {
  check(data.size() == into.size(), "an answer has the length of the segment that it answers");
  Announcement announcement;
  if (const auto place = exports_.find(into.data(), into.size())) {
    announcement.is_offered = 1;
    announcement.answer = *place;
  }
  if (!announce_and_send(stream, data, announcement)) return false;
  is_offered_.push_back(announcement.is_offered != 0);
  return true;
}

bool DeviceChannel::receive(void* stream, std::span<std::byte> into) {
  check(!is_offered_.empty(), "an answer is received before its segment was sent");
  if (is_offered_.front()) {
    require_batch(stream);
    statistics_.bytes_received += into.size();
  } else if (!receive(stream, into, kPlain)) {
    return false;
  }
  is_offered_.pop_front();
  return true;
}

}  // namespace kolo::inline v0::cuda
