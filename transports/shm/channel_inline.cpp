// Fast path for a frame with only one or two segments: written directly into the frame and read
// there. The first segments of small operations use it (collectives/executor/single_segment.cpp).
// Their latency is the time of the instructions before the frame's word is written and after it is
// seen.
#include <cstring>

#include "transports/base/check.h"
#include "transports/base/copy_words.h"
#include "transports/shm/channel.h"

namespace kolo::inline v0::shm {

namespace {

// Polls of a frame before the reader returns "not now". The next poll would be a call later, some
// 30 ns, which adds to the latency. (all_reduce of 8 bytes, near cores: 0.19 us with 64 polls, 0.20
// without.)
constexpr int kLooks = 64;

constexpr bool fit_into_frame(std::size_t bytes, std::size_t next_bytes) {
  return bytes <= kTinyBytes && next_bytes <= kTinyBytes &&
         words_of(bytes) + words_of(next_bytes) <= words_of(kFrameBytes);
}

}  // namespace

// If false, the normal path throws the error, waits for credit or takes held segments along.
bool ShmChannel::can_publish_alone(unsigned flags) {
  return frames_out_ != nullptr && held_.tiny_segments == 0 && (flags & (kMore | kAnswered)) == 0 &&
         reserved_ == Open::kNone && !has_ended_ && failure_.empty() && has_frame_credit();
}

Frame& ShmChannel::next_alone() {
  wanted_ &= ~std::uint64_t{kCredit};
  returns_slot_[published_ % kFrames] = false;
  return frames_out_[published_ % kFrames];
}

void ShmChannel::publish_alone(Frame& frame, unsigned segments, unsigned words) {
  frame.word.store(pack_tiny(segments, words, published_), std::memory_order_release);
  ++published_;
  statistics_.segments_sent += segments;
  wake(kData);
  ask_for_next(words);
}

bool ShmChannel::send_gathered(std::span<const std::byte> head, std::span<const std::byte> body,
                               std::size_t bytes, unsigned flags) {
  if (bytes > kTinyBytes || !can_publish_alone(flags)) [[unlikely]]
    return Channel::send_gathered(head, body, bytes, flags);
  check_pieces(head, body.size(), bytes);
  Frame& frame = next_alone();
  copy_words(frame.tiny, head.data(), head.size() / 8);
  copy_few(frame.tiny + head.size(), body.data(), body.size());
  publish_alone(frame, 1, words_of(bytes));
  statistics_.bytes_sent += bytes;
  return true;
}

bool ShmChannel::send_both(std::span<const std::byte> head, std::size_t bytes,
                           std::span<const std::byte> next, unsigned flags) {
  if (!can_publish_alone(flags)) [[unlikely]]
    return false;
  check_pieces(head, 0, bytes);
  const unsigned words = words_of(bytes) + words_of(next.size());
  if (!fit_into_frame(bytes, next.size())) return send_both_by_slot(head, bytes, next);
  Frame& frame = next_alone();
  copy_words(frame.tiny, head.data(), head.size() / 8);
  copy_few(frame.tiny + words_of(bytes) * 8, next.data(), next.size());
  publish_alone(frame, 2, words);
  statistics_.bytes_sent += bytes + next.size();
  return true;
}

// Sends the second segment in a slot that the frame names.
bool ShmChannel::send_both_by_slot(std::span<const std::byte> head, std::size_t bytes,
                                   std::span<const std::byte> next) {
  const bool is_right = bytes <= kTinyBytes && next.size() < kShortestChoice &&
                        next.size() <= pair_.layout.segment_bytes();
  if (!is_right || !find_slot()) return false;
  wanted_ &= ~std::uint64_t{kCredit};
  copy_words(buffers().held.data(), head.data(), head.size() / 8);
  held_.tiny_segments = 1;
  held_.tiny_words = words_of(bytes);
  std::memcpy(slot_at(reserved_slot_), next.data(), next.size());
  reserved_bytes_ = next.size();
  statistics_.segments_sent += 2;
  statistics_.bytes_sent += bytes + next.size();
  commit_slot(kPlain);
  return true;
}

// Returns the next frame if it has arrived and contains only `segments` tiny segments of `words`
// words.
const Frame* ShmChannel::look_for(unsigned segments, unsigned words) {
  if (has_frame_ || has_both_ || !failure_.empty()) return nullptr;
  const Frame& frame = frames_in_[next_frame_ % kFrames];
  const std::uint64_t expected = pack_tiny(segments, words, next_frame_);
  for (int looks = looks_for_next();; --looks) {
    const std::uint64_t word = frame.word.load(std::memory_order_acquire);
    if (word == expected) break;
    if (looks == 0 || (word & 0xffff) == frame_tag(next_frame_))
      return nullptr;  // no frame, or a different one
  }
  wanted_ &= ~std::uint64_t{kData};
  return &frame;
}

// Polls repeatedly only once per frame: a rank that waits for several channels, or for long, must
// not spend that time on each of them again and again.
int ShmChannel::looks_for_next() {
  if (!is_joined_ || looked_for_ == next_frame_ + 1) return 0;
  looked_for_ = next_frame_ + 1;
  return kLooks;
}

const std::byte* ShmChannel::view_unaligned(std::size_t bytes) {
  const unsigned words = words_of(bytes);
  const Frame* const frame = bytes <= kTinyBytes ? look_for(1, words) : nullptr;
  if (frame == nullptr) return view(bytes);
  current_.tiny_segments = 1;
  current_.tiny_words = words;
  current_.has_slot = false;
  current_.is_answered = false;
  current_.is_offered = false;
  current_.is_timed = false;
  tiny_word_ = 0;
  has_frame_ = true;
  open_ = Open::kInFrame;
  open_bytes_ = bytes;
  return frame->tiny;
}

Both ShmChannel::view_both(std::size_t bytes, std::size_t next_bytes) {
  if (!fit_into_frame(bytes, next_bytes)) return view_both_by_slot(bytes, next_bytes);
  const unsigned words = words_of(bytes);
  const Frame* const frame = look_for(2, words + words_of(next_bytes));
  if (frame == nullptr) return {};
  has_both_ = true;
  both_bytes_ = bytes + next_bytes;
  return {frame->tiny, frame->tiny + words * 8};
}

// A frame of another form stays loaded for the normal path.
Both ShmChannel::view_both_by_slot(std::size_t bytes, std::size_t next_bytes) {
  if (next_bytes >= kShortestChoice || has_frame_ || has_both_ || !failure_.empty()) return {};
  for (int looks = looks_for_next(); !load_frame(); --looks) {
    if (looks == 0) return {};
  }
  const bool is_plain = current_.has_slot && !current_.is_answered && !current_.is_offered &&
                        !current_.is_timed && current_.slot_bytes == next_bytes;
  if (!is_plain || current_.tiny_segments != 1 || current_.tiny_words != words_of(bytes)) return {};
  wanted_ &= ~std::uint64_t{kData};
  has_both_ = true;
  both_bytes_ = bytes + next_bytes;
  return {frames_in_[next_frame_ % kFrames].tiny, slot_at(current_.slot)};
}

void ShmChannel::release_both() {
  check_alive();
  check(has_both_, "shm: no two segments are in view to release");
  statistics_.segments_received += 2;
  statistics_.bytes_received += both_bytes_;
  has_both_ = false;
  if (has_frame_) mine_->returned.set(next_frame_, keep_slot(current_.slot));
  has_frame_ = false;
  ++next_frame_;
  mine_->consumed.store(next_frame_, std::memory_order_release);
  wake(kCredit);
}

}  // namespace kolo::inline v0::shm
