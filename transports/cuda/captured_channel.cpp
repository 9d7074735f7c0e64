#include "transports/cuda/captured_channel.h"

#include <fmt/format.h>
#include <cstddef>
#include <utility>

#include "transports/base/aligned_memory.h"
#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::cuda {

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
  if (slots_ != nullptr && slots_are_free_) device_.free(slots_);
  if (ended_ != nullptr) device_.destroy_event(ended_);
}

std::byte* CapturedChannel::slot(std::byte* slots, std::uint32_t piece) const {
  return slots + (piece % link_.slots) * slot_stride(link_.segment_bytes);
}

std::size_t CapturedChannel::slots_bytes() const {
  return slot_stride(link_.segment_bytes) * link_.slots;
}

void CapturedChannel::wait(Address word, std::uint32_t value) const {
  device_.wait_until_at_least(link_.own_words + word, value, stream_);
}

void CapturedChannel::write(Address word, std::uint32_t value) const {
  device_.write_low(word, value, stream_);
}

// --- one-time exchange of slots ---

void CapturedChannel::have_slots() {
  if (slots_ != nullptr) return;
  if (ended_ == nullptr) ended_ = device_.make_event();
  const std::size_t bytes = slots_bytes();
  std::byte* const made = device_.allocate(bytes);
  Exported& place = link_.theirs->captured_slots;
  try {
    place = {0, reinterpret_cast<std::uint64_t>(made), bytes, 0, device_.export_memory(made)};
  } catch (...) {
    device_.free(made);
    throw;
  }
  slots_ = made;
  is_used_.store(true, std::memory_order_release);
  link_.theirs->has_captured_slots.store(1, std::memory_order_release);
}

bool CapturedChannel::find_their_slots() {
  if (their_slots_ != nullptr) return true;
  if (link_.own->has_captured_slots.load(std::memory_order_acquire) == 0) return false;
  const Exported place = link_.own->captured_slots;  // a copy, since the peer can write there
  if (place.bytes < slots_bytes()) {
    throw Error(ErrorCode::kProtocol, link_.peer,
                fmt::format("rank {} offers {} bytes for captured work (cuda_ipc), expected {}: "
                            "run the same build of kolo on every rank",
                            link_.peer, place.bytes, slots_bytes()));
  }
  if (link_.is_same_process) {
    their_slots_ = reinterpret_cast<std::byte*>(place.base);
  } else {
    their_slots_ = mapping_ =
        device_.open(place.handle, slots_bytes(), fmt::format("rank {}", link_.peer));
  }
  return true;
}

// --- batches ---

void CapturedChannel::begin(Stream stream, std::uint64_t capture) {
  check(!is_begun_, "begin() before the batch begun last has ended");
  have_slots();
  if (capture == capture_ && stream != stream_) device_.wait_for(ended_, stream);
  capture_ = capture;
  stream_ = stream;
  is_begun_ = true;
  is_joined_ = is_drained_ = false;
  sent_ = taken_ = 0;
  write(link_.own_words + kStage, static_cast<std::uint32_t>(Stage::kBegun));
  write(link_.their_words + kReady, 1);
}

void CapturedChannel::require(Stream stream) const {
  check(is_begun_ && stream == stream_,
        "call a stream's operations between begin() and end() of the same stream");
}

// The stage is written before the reset of ready: a reader that sees the reset also sees the stage.
void CapturedChannel::join() {
  if (std::exchange(is_joined_, true)) return;
  wait(kReady, 1);
  write(link_.own_words + kStage, static_cast<std::uint32_t>(Stage::kJoined));
  write(link_.own_words + kReady, 0);
}

std::byte* CapturedChannel::reserve() {
  if (!find_their_slots()) return nullptr;
  join();
  if (sent_ >= link_.slots) wait(kFreed, sent_ + 1 - static_cast<std::uint32_t>(link_.slots));
  return slot(their_slots_, sent_);
}

void CapturedChannel::commit() { write(link_.their_words + kArrived, ++sent_); }

const std::byte* CapturedChannel::view() {
  wait(kArrived, taken_ + 1);
  return slot(slots_, taken_);
}

void CapturedChannel::release() { write(link_.their_words + kFreed, ++taken_); }

void CapturedChannel::drain() {
  if (std::exchange(is_drained_, true)) return;
  join();
  write(link_.their_words + kArrived, sent_ + 1);
}

void CapturedChannel::end() {
  drain();
  wait(kArrived, taken_ + 1);
  write(link_.own_words + kArrived, 0);
  write(link_.own_words + kFreed, 0);
  write(link_.own_words + kStage, static_cast<std::uint32_t>(Stage::kNone));
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

void CapturedChannel::unmap() noexcept {
  if (mapping_ != nullptr) device_.close(std::exchange(mapping_, nullptr));
}

}  // namespace kolo::cuda
