// The two directions of a staged channel: between a place in device memory and a host channel, by
// way of a ring of pinned slots.
//
// A *transfer* is what one call hands over: bytes that lie together on the device. It goes as
// *pieces*, each one segment of the host's form, the last one maybe shorter; a transfer of no bytes
// is a piece of none. Both ends count pieces, so the n-th that leaves is the n-th that arrives.
//
//     out    the stream writes `handed` --> copy to a slot, `copied` --> Channel::send
//     in     Channel::receive into a slot, the place is free --> copy to it, `landed` --> the
//     stream
//
// All of it is done by pump(), which never waits: what is not ready is found again next time.
// Pieces that lie together on both sides are copied at once, up to half the ring, so that the other
// half is on its way meanwhile.
//
// Threading: one at a time. Errors: the host channel's, and the device's (kSystem); the direction
// is dead then.
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

namespace kolo::cuda {

inline constexpr std::uint64_t kMostSlots = 16;

class Outgoing {
 public:
  // `copied_at`: where the device sees words.copied.
  Outgoing(CopyStream& copies, const Ring& ring, const StagingWords& words, Address copied_at)
      : copies_(copies), ring_(ring), words_(words), copied_at_(copied_at) {}

  // Once `handed` is as much as what is returned, it may be copied. The memory must stay unchanged
  // until `copied` is.
  std::uint64_t add(std::span<const std::byte> data, unsigned flags);

  // True where something moved. `may_send`: the host's own form has no slot of the channel's.
  bool pump(Channel& host, bool may_send);

  // Nothing is to be sent any more, or yet: the host's own form may.
  bool is_idle() const { return transfers_.empty() && sent_ == given_; }
  // What the stream has handed over is on its way.
  bool has_sent_all_handed() const;
  // It goes on when the device has done something, and no host's doing will tell of that.
  bool watches_device() const;
  std::size_t transfers() const { return transfers_.size(); }

 private:
  struct Transfer {
    std::span<const std::byte> rest;
    std::uint64_t end = 0;  // the number of the piece after it
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
  std::deque<Transfer> transfers_;  // not yet given to the device whole
  std::array<std::size_t, kMostSlots> lengths_{};
  std::array<unsigned, kMostSlots> flags_{};
  std::uint64_t added_ = 0;    // pieces, of all that was added
  std::uint64_t given_ = 0;    // to the device
  std::uint64_t sent_ = 0;     // by the host channel
  std::uint64_t drained_ = 0;  // their slots are free
};

class Incoming {
 public:
  Incoming(CopyStream& copies, const Ring& ring, const StagingWords& words, Address landed_at)
      : copies_(copies), ring_(ring), words_(words), landed_at_(landed_at) {}

  // What comes next, to `into` once `gate` is at least `value`. Once `landed` is as much as what is
  // returned, it is there.
  std::uint64_t add(std::span<std::byte> into, const std::atomic<std::uint64_t>& gate,
                    std::uint64_t value);
  // The number of pieces once as many bytes more were added: a gate's value.
  std::uint64_t end_of(std::size_t bytes) const;

  // `may_receive`: the host's own form is not in the middle of a segment.
  bool pump(Channel& host, bool may_receive);

  // All that was added has been received: the host's own form may go on.
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
  std::deque<Expected> expected_;  // not yet received whole
  std::deque<Landing> landings_;   // not yet given to the device whole
  std::uint64_t added_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t given_ = 0;
};

}  // namespace kolo::cuda
