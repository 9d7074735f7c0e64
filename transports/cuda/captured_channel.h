// Channel operations on a stream that is being captured into a CUDA graph. The captured work can be
// launched again and again; each launch is a *replay*.
//
// The words of a live channel count up for ever. A replay has the captured values in its commands,
// so its words start at 0 each time, and the streams reset them:
//
//     begin    stage := kBegun, the peer's ready := 1             "my words are 0, I take pieces"
//     join     wait ready >= 1, stage := kJoined, ready := 0      before the first send
//     reserve  wait freed >= piece + 1 - slots     commit    the peer's arrived := piece + 1
//     view     wait arrived >= piece + 1           release   the peer's freed := piece + 1
//     drain    the peer's arrived := sent + 1                     "that was all"
//     end      wait arrived >= taken + 1, arrived := freed := 0, stage := kNone
//
// Correctness. When a rank ends, it has seen the peer's "that was all", after which the peer writes
// nothing in this replay. So the words that the rank resets stay 0 until the peer joins the next
// replay, which happens after this rank's next ready. The peer's next ready comes after the peer's
// end, so after this rank's "that was all", and so after this rank's join. So no ready is
// overwritten before it is read.
//
// Deadlock. begin waits for nothing, and drain waits only for the peer's begin. If all channels of
// a job begin before any sends, and all are drained before any ends, no cycle of waits exists
// beyond those of the schedule itself.
//
// All data go through separate slots, which are allocated when the channels meet: an allocation may
// wait for all streams. No live segment takes part, and no memory of the caller that may be freed
// before a replay. Launches of a rank run one after another, in the same order on all ranks.
//
// Shutdown: the host writes the high halves of the words. This releases all waits of replays,
// including later ones; their results are invalid. Slots stay mapped until the last replay has
// ended.
//
// Cost: no host time at a replay; on the device about 4 more words per channel than a live batch.
// Neighbouring words are one node of the graph.
// Threading: one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transports/cuda/device.h"
#include "transports/cuda/link.h"
#include "transports/cuda/pending_writes.h"

namespace kolo::inline v0::cuda {

class CapturedChannel final : private DeferredFrees::Worker {
 public:
  CapturedChannel(const Device& device, PendingWrites& writes, const Link& link)
      : device_(device), writes_(writes), link_(link) {
    device_.frees().join(*this);
  }
  ~CapturedChannel();
  CapturedChannel(const CapturedChannel&) = delete;
  CapturedChannel& operator=(const CapturedChannel&) = delete;

  // Opens a batch of capture number `capture`; one at a time. Error kSystem.
  void begin(Stream stream, std::uint64_t capture);
  bool is_begun() const { return is_begun_; }
  void require(Stream stream) const;
  void end();

  std::byte* reserve();
  void commit();
  const std::byte* view();
  void release();
  void drain();

  // --- end of the channel ---

  // True if anything has been captured, so a replay may start at any time.
  // Safe from any thread.
  bool is_used() const { return is_used_.load(std::memory_order_acquire); }
  // True if the stream of a replay is between begin and end.
  bool is_at_work() const noexcept;
  // True if a replay waits for a write that will never come, since the peer has ended and all its
  // writes have arrived. `has_finished`: the peer had ended all replays that it began. Safe from
  // any thread, as is free_streams().
  bool is_hopeless(bool has_finished) const noexcept;
  void free_streams() noexcept;

 private:
  // A replay that begins later is unknown to any host.
  bool is_idle() noexcept override { return !is_at_work(); }

  void join();
  std::byte* slot(std::byte* slots, std::uint32_t piece) const;
  WordOperation own(Address word, std::uint32_t value) const;
  void wait(Address word, std::uint32_t value) const;
  void publish(Address word, std::uint32_t value) const;

  const Device& device_;
  PendingWrites& writes_;
  const Link& link_;
  std::atomic<bool> is_used_ = false;
  Event ended_ = nullptr;  // orders two streams within one capture

  std::uint64_t capture_ = 0;
  Stream stream_ = nullptr;
  bool is_begun_ = false;
  bool is_joined_ = false;
  bool is_drained_ = false;
  std::uint32_t sent_ = 0;
  std::uint32_t taken_ = 0;
};

}  // namespace kolo::inline v0::cuda
