#include "transports/shm/channel.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "transports/base/check.h"
#include "transports/base/copy_words.h"
#include "transports/error.h"
#include "transports/posix/host/memory_barrier.h"
#include "transports/posix/host/prefetch.h"
#include "transports/posix/host/streaming_copy.h"
#include "transports/posix/unix_socket.h"

namespace kolo::inline v0::shm {

namespace {

// Prefetched bytes of a slot; the processor's own prefetcher fetches the rest. (4 KiB made an
// all_reduce of 8 KiB and more 2 to 5 % slower, as both ranks are busy.) A one-way sender has time
// for more: 16 KiB make a broadcast of 8 to 64 KiB 10 % faster.
constexpr std::size_t kMostPrefetched = 1024;
constexpr std::size_t kMostPrefetchedOneWay = 16 * 1024;

// Words in the first cache line, which cross together with the frame's word.
constexpr unsigned kFirstLineWords = 7;

// Both buffers have room for whole words.
void copy_tiny(std::byte* to, const std::byte* from, unsigned words) {
  if (words <= kFirstLineWords) return copy_words(to, from, words);
  std::memcpy(to, from, words * 8);
}

}  // namespace

// --- sending ---

std::byte* ShmChannel::reserve(std::size_t bytes) {
  check_alive();
  check(reserved_ == Open::kNone, "shm: a slot is reserved already; commit it first");
  check(bytes <= pair_.layout.segment_bytes(), "shm: a segment is longer than segment_bytes");
  if (has_ended_) fail();
  // A tiny segment needs a slot as well, as commit() may ask for an answer to it.
  const bool has_answer_credit = answers_asked_ - answers_read_ < kMostSlots;
  if (!has_frame_credit() || !has_answer_credit || !find_slot()) {
    if (!is_begun()) return reserve(bytes);  // the region and its slots have just been made
    send_held();                             // the peer may need it before it can give credit
    return not_now(kCredit);
  }
  wanted_ &= ~std::uint64_t{kCredit};
  reserved_bytes_ = bytes;
  reserved_ = bytes <= kTinyBytes ? Open::kTiny : Open::kSlot;
  return reserved_ == Open::kTiny ? tiny_place() : slot_at(reserved_slot_);
}

// Uses the held bytes if they are empty, so that nothing is moved at publication. Behind other
// words the place might not be aligned.
std::byte* ShmChannel::tiny_place() {
  return held_.tiny_words == 0 ? buffers().held.data() : buffers().tiny_out.data();
}

void ShmChannel::commit(unsigned flags) {
  check_alive();
  check(reserved_ != Open::kNone, "shm: nothing is reserved to commit");
  ++statistics_.segments_sent;
  statistics_.bytes_sent += reserved_bytes_;
  if (reserved_ == Open::kTiny && (flags & kAnswered) == 0) {
    commit_tiny(flags);
  } else {
    if (reserved_ == Open::kTiny) {
      std::memcpy(slot_at(reserved_slot_), tiny_place(), reserved_bytes_);
    }
    commit_slot(flags);
  }
  reserved_ = Open::kNone;
}

bool ShmChannel::send(std::span<const std::byte> data, unsigned flags) {
  if (data.size() >= kShortestChoice) return send_long(data, flags);
  return Channel::send_copy(data, flags);
}

void ShmChannel::flush() {
  is_listed_ = false;
  send_held();
}

void ShmChannel::send_held() {
  if (held_.tiny_segments > 0) publish(held_);
}

// Requires two frames: a tiny segment that does not fit into the held frame publishes that first.
bool ShmChannel::has_frame_credit() {
  if (published_ + 2 - consumed_ <= kFrames) return true;
  collect_consumed();
  return published_ + 2 - consumed_ <= kFrames;
}

bool ShmChannel::find_slot() {
  if (free_count_ == 0) collect_consumed();
  if (free_count_ == 0) return false;
  reserved_slot_ = free_slots_[free_count_ - 1];
  return true;
}

// Removes a slot from the free ones. Searches from the end, as it is mostly the last.
void ShmChannel::take_slot(unsigned slot) {
  const auto end = free_slots_.begin() + free_count_;
  const auto found = std::find(std::reverse_iterator(end), free_slots_.rend(), slot).base();
  std::copy(found, end, found - 1);
  --free_count_;
}

void ShmChannel::own_slot(unsigned slot) {
  const std::uint32_t bit = std::uint32_t{1} << slot;
  if ((owned_ & bit) != 0) fail_protocol("has returned a slot that was not its own");
  owned_ |= bit;
}

// Chooses the slot to return for a received one: another one if this side sends as well (layout.h).
unsigned ShmChannel::keep_slot(unsigned received) {
  if (unmatched_sends_ == 0) return received;
  if (free_count_ == 0) collect_consumed();
  const auto first = free_slots_.begin();
  const auto end = first + free_count_;
  const auto given = std::find_if(first, end, [this](unsigned slot) {
    return reserved_ == Open::kNone || slot != reserved_slot_;
  });
  if (given == end) return received;
  const unsigned slot = *given;
  own_slot(received);
  *std::copy(given + 1, end, given) = static_cast<std::uint8_t>(received);
  owned_ &= ~(std::uint32_t{1} << slot);
  --unmatched_sends_;
  return slot;
}

// The peer has touched returned slots, so they are put at the front, to be used last.
void ShmChannel::collect_consumed() {
  const std::uint64_t consumed = theirs_->consumed.load(std::memory_order_acquire);
  if (consumed - consumed_ > published_ - consumed_)
    fail_protocol("has consumed more than it was sent");
  for (; consumed_ < consumed; ++consumed_) {
    if (!returns_slot_[consumed_ % kFrames]) continue;
    const unsigned slot = theirs_->returned.of(consumed_);
    if (slot >= 2 * static_cast<unsigned>(pair_.layout.slots()))
      fail_protocol("has returned an invalid slot");
    own_slot(slot);
    std::copy_backward(free_slots_.begin(), free_slots_.begin() + free_count_,
                       free_slots_.begin() + free_count_ + 1);
    free_slots_.front() = static_cast<std::uint8_t>(slot);
    ++free_count_;
  }
}

void ShmChannel::commit_tiny(unsigned flags) {
  const unsigned words = words_of(reserved_bytes_);
  const bool is_apart = held_.tiny_words > 0;
  if (held_.tiny_words + words > words_of(kFrameBytes) ||
      held_.tiny_segments == kMostTinySegments) {
    publish(held_);
  }
  if (is_apart)
    copy_tiny(buffers().held.data() + held_.tiny_words * 8, buffers().tiny_out.data(), words);
  held_.tiny_words += words;
  ++held_.tiny_segments;
  if ((flags & kMore) == 0) {
    publish(held_);
  } else if (!is_listed_) {
    is_listed_ = true;
    holding_.push_back(this);
  }
}

// A segment in a slot is never held back. Its frame takes the held tiny segments along.
void ShmChannel::commit_slot(unsigned flags) {
  Announcement announcement = held_;
  announcement.has_slot = true;
  announcement.is_answered = (flags & kAnswered) != 0;
  announcement.is_timed = choice_.is_timed;
  announcement.is_streamed = choice_.way == Way::kStreamed;
  announcement.is_received = (flags & kReceived) != 0;
  announcement.slot = reserved_slot_;
  announcement.slot_bytes = reserved_bytes_;
  take_slot(reserved_slot_);
  if (announcement.is_answered) {
    answers_[answers_asked_ % kMostSlots] = static_cast<std::uint8_t>(reserved_slot_);
    lent_[answers_asked_ % kMostSlots] = {};
    ++answers_asked_;
  } else {
    owned_ &= ~(std::uint32_t{1} << reserved_slot_);
    unmatched_sends_ = std::min(unmatched_sends_ + 1, kMostSlots);
  }
  publish(announcement);
  // The next segment is probably as long, and the peer's cache may hold lines of its slot.
  if (free_count_ > 0) {
    const std::size_t most = unmatched_sends_ > 1 ? kMostPrefetchedOneWay : kMostPrefetched;
    posix::prefetch_to_write(slot_at(free_slots_[free_count_ - 1]),
                             std::min(announcement.slot_bytes, most));
  }
}

void ShmChannel::publish(const Announcement& announcement, const Offer& offer) {
  returns_slot_[published_ % kFrames] =
      announcement.has_slot && !announcement.is_answered && !announcement.is_offered;
  Frame& frame = frames_out_[published_ % kFrames];
  const unsigned words = announcement.tiny_words;
  copy_tiny(frame.tiny, buffers().held.data(), words);
  if (announcement.is_offered) {
    std::memcpy(frame.tiny + words * 8, &offer, sizeof offer);
    last_offer_ = published_ + 1;
  }
  frame.word.store(pack(announcement, published_), std::memory_order_release);
  ++published_;
  held_ = {};
  wake(kData);
  ask_for_next(words);
}

// Prefetches the next frame: it probably has as many words, and the peer's cache may hold its
// lines.
void ShmChannel::ask_for_next(unsigned words) {
  if (words <= kFirstLineWords) return;
  posix::prefetch_to_write(frames_out_[published_ % kFrames].tiny + kFirstLineWords * 8,
                           (words - kFirstLineWords) * 8);
}

// --- receiving ---

const std::byte* ShmChannel::view(std::size_t bytes) { return open_next(bytes); }

std::byte* ShmChannel::view_to_answer(std::size_t bytes) {
  std::byte* bytes_in = open_next(bytes);
  check(bytes_in == nullptr || (open_ == Open::kSlot && current_.is_answered),
        "shm: the sender did not ask for an answer to this segment");
  return bytes_in;
}

void ShmChannel::release() {
  check_alive();
  check(open_ != Open::kNone, "shm: nothing is in view to release");
  check(open_ != Open::kSlot || !current_.is_answered,
        "shm: this segment is to be answered, not released");
  close_current();
}

// A single copy by the kernel writes directly to `into`.
bool ShmChannel::receive(std::span<std::byte> into, unsigned flags) {
  into_ = into.data();
  const std::byte* bytes_in = open_next(into.size());
  into_ = nullptr;
  if (bytes_in == nullptr) return false;
  if (bytes_in != into.data() && (flags & kCold) != 0) {
    posix::streaming_copy(into.data(), bytes_in, into.size());
  } else if (bytes_in != into.data() && !into.empty()) {
    std::memcpy(into.data(), bytes_in, into.size());
  }
  release();
  return true;
}

std::byte* ShmChannel::open_next(std::size_t bytes) {
  check_alive();
  check(!has_both_, "shm: two segments are in view; release both first");
  if (!has_frame_ && !load_frame()) return not_now(kData);
  wanted_ &= ~std::uint64_t{kData};
  if (current_.tiny_segments == 0) {
    if (bytes != current_.slot_bytes) fail_length(bytes, current_.slot_bytes);
    if (current_.is_timed && bytes >= kShortestChoice) begin_timing();
    std::byte* const found = current_.is_offered ? find_offered(bytes) : slot_at(current_.slot);
    open_ = Open::kSlot;
    open_bytes_ = bytes;
    return found;
  }
  const unsigned left = current_.tiny_words - tiny_word_;
  const bool is_last = current_.tiny_segments == 1;
  const bool can_be = is_last ? words_of(bytes) == left : words_of(bytes) <= left;
  if (!can_be || bytes > kTinyBytes) fail_length(bytes, left * 8);
  if (open_ != Open::kTiny) {
    const std::byte* tiny = frames_in_[next_frame_ % kFrames].tiny;
    copy_tiny(buffers().tiny_in.data(), tiny + tiny_word_ * 8, words_of(bytes));
  }
  open_ = Open::kTiny;
  open_bytes_ = bytes;
  return buffers().tiny_in.data();
}

bool ShmChannel::load_frame() {
  const Frame& frame = frames_in_[next_frame_ % kFrames];
  const std::uint64_t word = frame.word.load(std::memory_order_acquire);
  if ((word & 0xffff) != frame_tag(next_frame_)) return false;
  unpack(word, current_);
  if (current_.slot >= 2 * static_cast<unsigned>(pair_.layout.slots()) ||
      current_.slot_bytes > pair_.layout.segment_bytes()) {
    fail_protocol("announced an invalid segment");
  }
  if (!current_.has_slot &&
      (current_.tiny_segments == 0 || current_.is_answered || current_.is_offered)) {
    fail_protocol("announced an invalid segment");
  }
  const bool is_in_slot = current_.has_slot && !current_.is_offered;
  if (is_in_slot && (owned_ >> current_.slot & 1) != 0)
    fail_protocol("announced a segment in a slot that is not its own");
  if (current_.is_offered) {
    if (words_of(sizeof current_offer_) + current_.tiny_words > words_of(kFrameBytes))
      fail_protocol("announced an invalid segment");
    std::memcpy(&current_offer_, frame.tiny + current_.tiny_words * 8, sizeof current_offer_);
    offered_ = nullptr;
  }
  has_frame_ = true;
  tiny_word_ = 0;
  if (is_in_slot) {
    posix::prefetch_to_read(slot_at(current_.slot), std::min(current_.slot_bytes, kMostPrefetched));
  }
  return true;
}

void ShmChannel::close_current() {
  ++statistics_.segments_received;
  statistics_.bytes_received += open_bytes_;
  if (open_ != Open::kSlot) {
    tiny_word_ += words_of(open_bytes_);
    --current_.tiny_segments;
  } else {
    // A peer may close after it got its answer, so answer() checks before it answers.
    if (current_.is_offered && !current_.is_answered) check_offer_stands();
    if (current_.is_timed) end_timing();
    if (!current_.is_offered && !current_.is_answered)
      mine_->returned.set(next_frame_, keep_slot(current_.slot));
    current_.has_slot = false;
  }
  open_ = Open::kNone;
  if (current_.tiny_segments > 0 || current_.has_slot) return;
  has_frame_ = false;
  ++next_frame_;
  mine_->consumed.store(next_frame_, std::memory_order_release);
  wake(kCredit);
}

// --- answers ---

void ShmChannel::answer() {
  check_alive();
  check(open_ == Open::kSlot && current_.is_answered, "shm: nothing is in view to answer");
  if (current_.is_offered) check_offer_stands();
  statistics_.bytes_sent += open_bytes_;
  ++answers_given_;
  mine_->answered.store(answers_given_, std::memory_order_release);
  wake(kAnswer);
  close_current();
}

const std::byte* ShmChannel::view_answer(std::size_t bytes) {
  check_alive();
  check(answers_read_ < answers_asked_, "shm: no segment is out to be answered");
  if (answered_ == answers_read_) {
    answered_ = theirs_->answered.load(std::memory_order_acquire);
    if (answered_ == answers_read_) return not_now(kAnswer);
    if (answered_ - answers_read_ > answers_asked_ - answers_read_) {
      fail_protocol("has answered more than it was asked");
    }
  }
  wanted_ &= ~std::uint64_t{kAnswer};
  answer_bytes_ = bytes;
  const auto lent = lent_[answers_read_ % kMostSlots];
  return lent.empty() ? slot_at(answers_[answers_read_ % kMostSlots]) : lent.data();
}

void ShmChannel::release_answer() {
  check_alive();
  check(answered_ > answers_read_, "shm: no answer is in view to release");
  statistics_.bytes_received += answer_bytes_;
  const auto place = answers_read_ % kMostSlots;
  if (lent_[place].empty()) free_slots_[free_count_++] = answers_[place];
  lent_[place] = {};
  ++answers_read_;
}

// --- sleeping and ending ---

std::byte* ShmChannel::not_now(Event event) {
  if (!is_joined_) [[unlikely]] {
    if (has_ended_) fail();
    connector_.connect(*this, event != kData);
  }
  wanted_ |= event;
  return nullptr;
}

// Wakes the peer if it sleeps and waits for `event`. The peer announces its sleep and then looks
// for new events; this rank publishes an event and then looks for a sleeper. Both need a full
// barrier in between, or each may miss the other. The sleeper runs the barrier for both; without
// remote barriers, both use an atomic read-modify-write on the same word.
void ShmChannel::wake(Event event) {
  std::uint64_t asleep = 0;
  if (pair_.has_barriers) {
    posix::keep_order();
    asleep = theirs_->asleep.load(std::memory_order_relaxed);
  } else {
    asleep = theirs_->asleep.fetch_or(0, std::memory_order_seq_cst);
  }
  if ((asleep & event) == 0) [[likely]]
    return;
  if (!is_attached()) return connector_.connect(*this, true);  // its region may have arrived
  if (theirs_->asleep.exchange(0, std::memory_order_seq_cst) == 0) return;
  const std::byte bell{1};
  posix::send_message(sockets_[0].get(), {&bell, 1});  // a full socket wakes the peer as well
  ++statistics_.system_calls;
}

bool ShmChannel::meets_awaited_peer_on(unsigned core) {
  const std::uint64_t word = std::uint64_t{core} + 1;
  if (mine_->core.load(std::memory_order_relaxed) != word)
    mine_->core.store(word, std::memory_order_relaxed);
  return wanted_ != 0 && theirs_->core.load(std::memory_order_relaxed) == word;
}

void ShmChannel::announce_sleep(std::uint64_t events) {
  mine_->asleep.exchange(events, std::memory_order_seq_cst);
}

bool ShmChannel::has_news(std::uint64_t events) {
  const std::uint64_t word = frames_in_[next_frame_ % kFrames].word.load(std::memory_order_acquire);
  const std::uint64_t consumed = theirs_->consumed.load(std::memory_order_acquire);
  const std::uint64_t answered = theirs_->answered.load(std::memory_order_acquire);
  const bool has_data = (word & 0xffff) == frame_tag(next_frame_) && reported_frame_ != next_frame_;
  const bool has_credit = consumed != consumed_ && consumed != reported_consumed_;
  const bool has_answer = answered != answers_read_ && answered != reported_answered_;
  if ((events & kData) != 0 && has_data) {
    reported_frame_ = next_frame_;
    return true;
  }
  if ((events & kCredit) != 0 && has_credit) {
    reported_consumed_ = consumed;
    return true;
  }
  if ((events & kAnswer) != 0 && has_answer) {
    reported_answered_ = answered;
    return true;
  }
  return false;
}

bool ShmChannel::end_sleep() { return mine_->asleep.exchange(0, std::memory_order_seq_cst) == 0; }

void ShmChannel::fail() {
  // After an orderly end of the peer the next call may still find data and answers, so this error
  // is not kept.
  if (failure_.empty()) throw Error(ErrorCode::kPeerLost, pair_.peer, end_text_);
  throw Error(failure_code_, pair_.peer, failure_);
}

void ShmChannel::fail_protocol(const char* what) {
  kill(ErrorCode::kProtocol,
       "rank " + std::to_string(pair_.rank) + ": " + pair_.peer_name + " " + what + " (shm)");
  fail();
}

void ShmChannel::fail_length(std::size_t expected, std::size_t found) {
  kill(ErrorCode::kProtocol, "rank " + std::to_string(pair_.rank) + ": expects a segment of " +
                                 std::to_string(expected) + " bytes from " + pair_.peer_name +
                                 ", which sent one of " + std::to_string(found) +
                                 " (shm): do both ranks run the same schedule?");
  fail();
}

}  // namespace kolo::inline v0::shm
