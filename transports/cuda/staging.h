// Two directions of a staged channel: between device memory and a host channel, through a ring of
// pinned slots.
//
// A *transfer* is the contiguous device memory of one call. It travels as *pieces*, each one a
// segment of the host channel; the last piece may be shorter. An empty transfer is one empty piece.
// Both ends count pieces, so the n-th piece sent is the n-th piece received.
//
//     out    the stream writes `handed` --> copy to a slot, `copied` --> Channel::send
//     in     Channel::receive into a slot, the place is free --> copy to it, `landed` --> the
//            stream
//
// pump() does all of it and never waits: work that is not ready is tried at the next call. Pieces
// that are contiguous on both sides are copied together, up to half the ring, so that the other
// half can be in flight meanwhile.
//
// Threading: one thread at a time. Errors: those of the host channel and of the device (kSystem).
// After an error the direction cannot be used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "transports/cuda/copy_stream.h"
#include "transports/cuda/pinned_ring.h"
#include "transports/transport.h"

namespace kolo::inline v0::cuda {

inline constexpr std::uint64_t kMostSlots = 16;

class Outgoing {
 public:
  // `copied_at`: device address of words.copied.
  Outgoing(CopyStream& copies, const Ring& ring, const StagingWords& words, Address copied_at)
      : copies_(copies), ring_(ring), words_(words), copied_at_(copied_at) {}

  // Adds a transfer and returns its end, counted in pieces. It may be copied once `handed` reaches
  // the end. The memory must stay unchanged until `copied` does.
  std::uint64_t add(std::span<const std::byte> data, unsigned flags);

  // True if something moved. `may_send`: the host's own calls hold no slot of the channel.
  bool pump(Channel& host, bool may_send);

  // Nothing is waiting to be sent, so the host's own calls may send.
  bool is_idle() const { return transfers_.empty() && sent_ == given_; }
  // All transfers that the stream has handed over have been sent.
  bool has_sent_all_handed() const;
  // True if only the device's progress can continue it, for which there is no notification.
  bool watches_device() const;
  std::size_t transfers() const { return transfers_.size(); }

 private:
  struct Transfer {
    std::span<const std::byte> rest;
    std::uint64_t end = 0;  // number of the piece after it
    unsigned flags = kPlain;
  };

  bool reclaim(Channel& host);
  bool send(Channel& host);
  bool copy();
  bool is_handed(const Transfer& transfer) const {
    return words_.handed.load(std::memory_order_acquire) >= transfer.end;
  }
  std::uint64_t copied() const;
  std::uint64_t half() const { return ring_.count / 2; }

  CopyStream& copies_;
  const Ring ring_;
  const StagingWords& words_;
  const Address copied_at_;
  std::deque<Transfer> transfers_;  // not completely enqueued on the device
  std::array<std::size_t, kMostSlots> lengths_{};
  std::array<unsigned, kMostSlots> flags_{};
  std::uint64_t added_ = 0;    // pieces of all transfers added
  std::uint64_t given_ = 0;    // pieces enqueued on the device
  std::uint64_t sent_ = 0;     // pieces sent on the host channel
  std::uint64_t drained_ = 0;  // pieces whose slots are free
};

class Incoming {
 public:
  Incoming(CopyStream& copies, const Ring& ring, const StagingWords& words, Address landed_at)
      : copies_(copies), ring_(ring), words_(words), landed_at_(landed_at) {}

  // Adds a transfer to `into`, which is free once `gate` reaches `value`. Returns its end, counted
  // in pieces: the data are there once `landed` reaches the end.
  std::uint64_t add(std::span<std::byte> into, const std::atomic<std::uint64_t>& gate,
                    std::uint64_t value);
  // End of a transfer of `bytes` if it were added now: the value for a gate.
  std::uint64_t end_of(std::size_t bytes) const;

  // `may_receive`: the host's own calls are not in the middle of a segment.
  bool pump(Channel& host, bool may_receive);

  // All transfers have been received, so the host's own calls may receive.
  bool is_idle() const { return expected_.empty(); }
  bool watches_device() const;
  std::size_t transfers() const { return landings_.size(); }

 private:
  struct Expected {
    std::size_t rest = 0;  // bytes
    std::uint64_t end = 0;
  };
  struct Landing {
    std::span<std::byte> rest;
    std::uint64_t end = 0;
    const std::atomic<std::uint64_t>* gate = nullptr;
    std::uint64_t value = 0;

    bool is_open() const { return gate->load(std::memory_order_acquire) >= value; }
  };

  bool receive(Channel& host);
  bool land();
  std::uint64_t landed() const;

  CopyStream& copies_;
  const Ring ring_;
  const StagingWords& words_;
  const Address landed_at_;
  std::deque<Expected> expected_;  // not completely received
  std::deque<Landing> landings_;   // not completely enqueued on the device
  std::uint64_t added_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t given_ = 0;
};

}  // namespace kolo::inline v0::cuda
