// Channel on device streams over CUDA IPC.
//
// A *piece* is a slot's content or a straight (zero-copy) segment. Both ends count pieces, with 64
// bits each way. The slots are in the receiver's device memory, and the sender writes them through
// its mapping. So a sender that is done may end while its last segments are unread, and a reduce
// kernel reads its operand from local memory.
//
//     reserve   wait until `freed` >= piece + 1 - slots     commit    write the peer's `arrived`
//     view      wait until `arrived` >= piece + 1           release   write the peer's `freed`
//
// send() also makes an announcement, from host to host in shared memory: where the bytes are. The
// piece's `arrived` tells when they are ready. If the memory cannot be exported, the announcement
// says that the bytes come through the slots. They may need more slots than there is credit for,
// and the peer's stream may be in the same state. So from the first such send on, a second stream
// publishes the sent pieces, and only that stream waits.
//
// Answers: an announcement may also offer a place for the result of a reduction. The peer's kernel
// stores the result there and in its own memory. `freed` then tells that the result is in place.
//
// Captured work (CUDA graphs): see captured_channel.h.
//
// Cost: about a microsecond of host time per driver call, and the time of the copies on the device.
// A call writes words and waits for one (pending_writes.h), if the caller combines them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "transports/cuda/backlog.h"
#include "transports/cuda/batches.h"
#include "transports/cuda/captured_channel.h"
#include "transports/cuda/device.h"
#include "transports/cuda/device_memory.h"
#include "transports/cuda/ipc_exports.h"
#include "transports/cuda/ipc_imports.h"
#include "transports/cuda/link.h"
#include "transports/cuda/pending_writes.h"
#include "transports/cuda/side_stream.h"
#include "transports/error.h"
#include "transports/transport.h"

namespace kolo::inline v0::cuda {

// Objects that all channels of a rank share; borrowed.
struct RankResources {
  IpcExports& exports;
  Backlog& backlog;
  PendingWrites& writes;
};

class DeviceChannel final : public StreamChannel, private StreamAnswers {
 public:
  DeviceChannel(const Device& device, const RankResources& rank, const Link& link);

  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const { return statistics_; }

  void begin(void* stream) override;
  void end(void* stream) override;
  std::byte* reserve(void* stream, std::size_t bytes) override;
  void commit(void* stream, unsigned flags) override;
  const std::byte* view(void* stream, std::size_t bytes) override;
  void release(void* stream) override;
  bool can_send() const override { return true; }
  bool send(void* stream, std::span<const std::byte> data, unsigned flags) override;
  bool receive(void* stream, std::span<std::byte> into, unsigned flags) override;
  const std::byte* view_sent(void* stream, std::size_t bytes) override;
  // Between ranks that share a device: a mapping to another device is better read than written.
  StreamAnswers* answers() override { return link_.is_same_device ? this : nullptr; }
  void drain(void* stream) override;
  void combine_words(void* stream) override;
  void flush(void* stream) override;
  void require_whole() override;
  std::string why_not_captured() const override { return ""; }

  // --- for the transport ---

  // True once after a call returned "not now". A caller that waits for that must not sleep, since
  // nothing would wake it.
  bool take_not_now() { return std::exchange(has_said_not_now_, false); }

  // Error kPeerLost if streams wait for data that a closed or dead peer never sent.
  void look_after_peer();
  bool is_peer_gone() const;  // it has unmapped all memory of this rank

  // No work of this channel is in flight, and all of it was whole.
  bool is_done() const noexcept {
    return !batches_.is_begun() && has_finished() && has_replayed() && !is_broken_.load();
  }
  // Closes the channel: every later call throws. Tells the peer, and also whether all streams of
  // this rank were done, on all channels.
  void close(bool is_all_done) noexcept;
  // Releases waiting streams, including those of later replays. Repeat it until has_finished().
  void free_streams() noexcept;
  bool has_finished() const noexcept {
    return batches_.has_finished() && (!aside_ || aside_->has_finished());
  }
  // Something has been captured and may be replayed until the end, so its memory stays mapped until
  // then.
  bool is_captured() const { return captured_.is_used(); }
  bool has_replayed() const noexcept { return !captured_.is_at_work(); }
  // Unmaps all memory of the peer, and tells the peer.
  void unmap() noexcept;

  // --- for the watcher's thread (peer_watcher.h), until the channel is destroyed ---

  int peer() const { return link_.peer; }
  // The peer's process has ended, or its transport is destroyed.
  void lose_peer() noexcept { is_peer_dead_.store(true, std::memory_order_release); }
  // A stream waits for a write that will never come, since the peer has closed or ended.
  bool is_hopeless() const noexcept;
  // Tells the peer that data of this rank may be wrong, since rank `lost` has ended.
  void tell_of_loss(int lost) noexcept;
  // Frees the waiting streams. Every later call throws.
  void break_off() noexcept;

 private:
  enum class Place { kSlot, kLanding, kMapped };

  // --- StreamAnswers ---
  bool send(void* stream, std::span<const std::byte> data, std::span<std::byte> into) override;
  std::byte* place() const override { return answer_; }
  bool receive(void* stream, std::span<std::byte> into) override;

  // A failure inside `body` leaves an operation half enqueued, so the channel is dead after it.
  template <typename Body>
  auto on_device(const Body& body);
  template <typename Body>
  auto on_captured(const Body& body);
  void require_slots(const char* operation) const;
  void copy(void* stream, std::byte* to, const std::byte* from, std::size_t bytes);
  std::byte* map_straight(const Exported& place, std::size_t bytes);
  void require_open();
  void require_batch(void* stream);
  void fail_if_lost(const char* operation, bool is_hopeless);
  bool lacks_arrived(std::uint64_t pieces) const noexcept;
  bool lacks_freed(std::uint64_t pieces) const noexcept;
  bool is_full();
  void wait(Address word, std::uint64_t pieces, void* stream);
  void publish(Address word, std::uint64_t pieces, void* stream);
  void wait_for_slot(void* stream);
  void publish_arrived(void* stream);
  Stream sending(void* stream);
  void has_sent();
  void wait_for_arrival(void* stream, std::uint64_t pieces);
  void publish_freed(void* stream);
  bool announce_and_send(void* stream, std::span<const std::byte> data, Announcement& announcement);
  void announce(Announcement& announcement, std::span<const std::byte> data);
  void send_through_slots(void* stream, std::span<const std::byte> data);
  void receive_through_slots(void* stream, std::span<std::byte> into);
  bool find_announcement(Announcement& announcement, std::size_t bytes);
  void take_announcement();
  void count_received(std::size_t bytes);
  std::byte* slot(std::byte* slots, std::uint64_t piece) const;

  const Device& device_;
  IpcExports& exports_;
  Backlog& backlog_;
  PendingWrites& writes_;
  const Link link_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;

  Batches batches_;
  IpcImports imports_;
  CapturedChannel captured_;
  std::uint64_t taken_by_batch_ = 0;  // by the last batch that ended

  std::optional<SideStream> aside_;  // publishes the sent pieces, if it exists
  std::uint64_t sent_ = 0;           // pieces
  std::uint64_t lent_ = 0;           // last straight piece
  std::uint64_t announced_ = 0;
  std::uint64_t seen_gone_ = 0;
  std::deque<bool> is_offered_;  // by segment with an answer: the peer stores it in place
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;

  std::uint64_t taken_ = 0;
  std::uint64_t read_ = 0;
  bool is_viewing_ = false;
  Place viewed_ = Place::kSlot;
  std::size_t viewed_bytes_ = 0;
  const std::byte* viewed_at_ = nullptr;
  std::byte* answer_ = nullptr;  // place of the answer to the viewed segment

  std::atomic<std::uint64_t> waits_for_arrived_ = 0;  // the highest value that a stream waits for
  std::atomic<std::uint64_t> waits_for_freed_ = 0;

  Landings landings_;

  std::string why_dead_;
  bool is_closed_ = false;
  bool is_unmapped_ = false;
  std::atomic<bool> is_peer_dead_ = false;
  std::atomic<bool> is_broken_ = false;  // streams were freed from waits for the peer
  bool has_said_not_now_ = false;
};

template <typename Body>
auto DeviceChannel::on_device(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    why_dead_ = error.what();
    throw;
  }
}

}  // namespace kolo::inline v0::cuda
