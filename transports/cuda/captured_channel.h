// A channel's pieces where its stream is being captured into a CUDA graph, so that what was
// captured can be launched again and again: a *replay*.
//
// A live channel's words count on for ever. A replay finds in its commands the values that were
// captured, so its words count from 0 each time, and the streams put them back themselves:
//
//     begin    stage := kBegun, the peer's ready := 1             "my words are 0, I take pieces"
//     join     wait ready >= 1, stage := kJoined, ready := 0      before what is sent first
//     reserve  wait freed >= piece + 1 - slots     commit    the peer's arrived := piece + 1
//     view     wait arrived >= piece + 1           release   the peer's freed := piece + 1
//     drain    the peer's arrived := sent + 1                     "that was all"
//     end      wait arrived >= taken + 1, arrived := freed := 0, stage := kNone
//
// Why that is sound. A rank's end has seen the peer's "that was all", behind which nothing of this
// replay is written; so the words that it puts back stay 0 until the peer joins the next replay,
// which it does after this rank's next ready. The peer's next ready comes behind the peer's end,
// and so behind this rank's "that was all", and so behind its join: no ready is overwritten unread.
// begin waits for nothing, and drain for nothing but the peer's begin: a job in which all channels
// begin before any sends, and all are drained before any ends, waits in no circle that the
// schedule has not.
//
// All goes through slots of its own, which are made and shown to the peer when the first work is
// captured: no live segment, and no memory of the caller's that might be gone at a replay, has a
// part in it. The launches of a rank follow one another, and are in the same order on all ranks.
//
// The end. What a host writes to the words' high halves frees all replays, those to come as well;
// their results are void. Slots stay mapped until unmap().
//
// Cost: of the host nothing at a replay; of the device some 4 words a channel more than live.
// Threading: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/cuda/device.h"
#include "transports/cuda/ipc_exports.h"
#include "transports/cuda/link.h"

namespace kolo::cuda {

class CapturedChannel {
 public:
  CapturedChannel(const Device& device, const Link& link) : device_(device), link_(link) {}
  // The slots stay where the peer may still have them mapped.
  ~CapturedChannel();
  CapturedChannel(const CapturedChannel&) = delete;
  CapturedChannel& operator=(const CapturedChannel&) = delete;

  // Of a capture's number; one at a time. Error kSystem.
  void begin(Stream stream, std::uint64_t capture);
  bool is_begun() const { return is_begun_; }
  void require(Stream stream) const;
  void end();

  // Null: the peer has not begun its first capture. Error kProtocol where it offers too few bytes.
  std::byte* reserve();
  void commit();
  const std::byte* view();
  void release();
  void drain();

  // --- for the end ---

  // Something has been captured: it may be replayed at any time.
  bool is_used() const { return slots_ != nullptr; }
  // The stream of a replay is between begin and end.
  bool is_at_work() const noexcept;
  // A replay waits for what a peer that has gone, all of whose writes have come, never wrote. `has
  // finished`: it had ended all replays that it began.
  bool is_hopeless(bool has_finished) const noexcept;
  void free_streams() noexcept;
  void unmap() noexcept;
  void keep_slots() noexcept { slots_are_free_ = false; }

 private:
  void have_slots();
  bool find_their_slots();
  void join();
  std::byte* slot(std::byte* slots, std::uint32_t piece) const;
  std::size_t slots_bytes() const;  // of all of a rank's
  void wait(Address word, std::uint32_t value) const;
  void write(Address word, std::uint32_t value) const;

  const Device& device_;
  const Link& link_;
  std::byte* slots_ = nullptr;
  std::byte* their_slots_ = nullptr;
  std::byte* mapping_ = nullptr;
  bool slots_are_free_ = true;
  Event ended_ = nullptr;  // within a capture: where the work before was another stream's

  std::uint64_t capture_ = 0;
  Stream stream_ = nullptr;
  bool is_begun_ = false;
  bool is_joined_ = false;
  bool is_drained_ = false;
  std::uint32_t sent_ = 0;
  std::uint32_t taken_ = 0;
};

}  // namespace kolo::cuda
