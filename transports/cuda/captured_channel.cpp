#include "transports/cuda/captured_channel.h"

#include <array>
#include <cstddef>
#include <utility>

#include "transports/base/aligned_memory.h"
#include "transports/base/check.h"

namespace kolo::inline v0::cuda {

namespace {

constexpr Address kWords = offsetof(Block, captured);
constexpr Address kReady = kWords + offsetof(CapturedWords, ready);
constexpr Address kArrived = kWords + offsetof(CapturedWords, arrived);
constexpr Address kFreed = kWords + offsetof(CapturedWords, freed);
constexpr Address kStage = kWords + offsetof(CapturedWords, stage);

Stage stage_of(const Block& block) {
  return static_cast<Stage>(block.captured.stage.low.load(std::memory_order_acquire));
}

}  // namespace

CapturedChannel::~CapturedChannel() {
  device_.frees().leave(*this);
  if (ended_ != nullptr) device_.destroy_event(ended_);
}

std::byte* CapturedChannel::slot(std::byte* slots, std::uint32_t piece) const {
  return slots + (piece % link_.slots) * slot_stride(link_.segment_bytes);
}

WordOperation CapturedChannel::own(Address word, std::uint32_t value) const {
  return write_low_word(link_.own_words + word, value);
}

void CapturedChannel::wait(Address word, std::uint32_t value) const {
  writes_.wait(wait_for_word(link_.own_words + word, value), stream_);
}

void CapturedChannel::publish(Address word, std::uint32_t value) const {
  writes_.write(write_low_word(link_.their_words + word, value), stream_);
}

// --- batches ---

void CapturedChannel::begin(Stream stream, std::uint64_t capture) {
  check(!is_begun_, "begin() before the batch begun last has ended");
  if (ended_ == nullptr) ended_ = device_.make_event();
  is_used_.store(true, std::memory_order_release);
  if (capture == capture_ && stream != stream_) device_.wait_for(ended_, stream);
  capture_ = capture;
  stream_ = stream;
  is_begun_ = true;
  is_joined_ = is_drained_ = false;
  sent_ = taken_ = 0;
  std::array words{own(kStage, static_cast<std::uint32_t>(Stage::kBegun)),
                   write_low_word(link_.their_words + kReady, 1)};
  device_.run(words, stream);
}

void CapturedChannel::require(Stream stream) const {
  check(is_begun_ && stream == stream_,
        "call a stream's operations between begin() and end() of the same stream");
}

// The stage is written before the reset of ready: a reader that sees the reset also sees the stage.
void CapturedChannel::join() {
  if (std::exchange(is_joined_, true)) return;
  writes_.flush();
  std::array words{wait_for_word(link_.own_words + kReady, 1),
                   own(kStage, static_cast<std::uint32_t>(Stage::kJoined)), own(kReady, 0)};
  device_.run(words, stream_);
}

std::byte* CapturedChannel::reserve() {
  join();
  if (sent_ >= link_.slots) wait(kFreed, sent_ + 1 - static_cast<std::uint32_t>(link_.slots));
  return slot(link_.their_captured_slots, sent_);
}

void CapturedChannel::commit() { publish(kArrived, ++sent_); }

const std::byte* CapturedChannel::view() {
  wait(kArrived, taken_ + 1);
  return slot(link_.own_captured_slots, taken_);
}

void CapturedChannel::release() { publish(kFreed, ++taken_); }

void CapturedChannel::drain() {
  if (std::exchange(is_drained_, true)) return;
  join();
  publish(kArrived, sent_ + 1);
}

void CapturedChannel::end() {
  drain();
  writes_.flush();
  std::array words{wait_for_word(link_.own_words + kArrived, taken_ + 1), own(kArrived, 0),
                   own(kFreed, 0), own(kStage, static_cast<std::uint32_t>(Stage::kNone))};
  device_.run(words, stream_);
  device_.record(ended_, stream_);
  is_begun_ = false;
}

// --- end of the channel ---

bool CapturedChannel::is_at_work() const noexcept {
  return is_used() && stage_of(*link_.own) != Stage::kNone;
}

// Read the word first, then the stage: the stage is then that of the replay that reset the word, or
// of a later one. A kBegun of a later replay is just as hopeless.
bool CapturedChannel::is_hopeless(bool has_finished) const noexcept {
  const bool is_ready = link_.own->captured.ready.low.load(std::memory_order_acquire) != 0;
  const Stage stage = stage_of(*link_.own);
  return stage == Stage::kBegun ? !is_ready : stage == Stage::kJoined && !has_finished;
}

void CapturedChannel::free_streams() noexcept {
  CapturedWords& words = link_.own->captured;
  for (CapturedWord* const word : {&words.ready, &words.arrived, &words.freed})
    word->high.store(CapturedWord::kReleasedHigh, std::memory_order_release);
}

}  // namespace kolo::inline v0::cuda
