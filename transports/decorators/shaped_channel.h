// Channel of a shaped transport.
//
// A segment travels as several segments of the channel below: a header with its times and length,
// then its bytes in pieces of the preferred length there (none for an empty segment). Sending: data
// that the channel below does not take now waits in `queue_`. Receiving: arrived segments wait in
// `held_` until they are due. The channel below never writes to the caller's memory, as a segment
// must not be there before its time. Preposted receives are posted for the pieces only.
//
//     send ── times ── queue_ ── header, bytes ──► held_ ── due? admitted? ── view
//             (sender's wire)      (below)         (receiver's wire)
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <vector>

#include "transports/base/aligned_memory.h"
#include "transports/base/preposted_receives.h"
#include "transports/decorators/shape.h"
#include "transports/decorators/token_bucket.h"
#include "transports/transport.h"

namespace kolo::inline v0::decorators {

class ShapedChannel;

// Pool of segment buffers, by powers of two.
class SegmentPool {
 public:
  AlignedMemory take(std::size_t bytes);
  void give_back(AlignedMemory memory, std::size_t bytes);

 private:
  static constexpr std::size_t kShelves = 8 * sizeof(std::size_t);

  std::array<std::vector<AlignedMemory>, kShelves> shelves_;
};

// Interface from a channel to its transport: times to wake up, and arriving segments.
class ShapingEvents {
 public:
  virtual ~ShapingEvents() = default;

  virtual Clock::time_point now() = 0;

  // Wakes the rank at `time`, when the channel can make progress.
  virtual void wake_at(Clock::time_point time) = 0;

  // Announces when the channel's next segment reaches this rank's incoming wire.
  virtual void comes(ShapedChannel& channel, TransitTimes at) = 0;

  // Calls admit() for all segments that have reached the wire by now.
  virtual void admit_due() = 0;
};

struct ShapedChannelSetup {
  int rank = 0;
  ShapedPath out;
  ShapedPath in;
  std::uint64_t seed = 1;
  bool has_same_clock = true;
  std::size_t longest_segment_bytes = 0;  // used if longer than below; sent in pieces
  TokenBucket* out_wire = nullptr;        // of the rank; null: the channel has its own wire
  TokenBucket* in_wire = nullptr;
};

class ShapedChannel final : public Channel {
 public:
  ShapedChannel(Channel& inner, const ShapedChannelSetup& setup, SegmentPool& pool,
                ShapingEvents& agenda);

  int peer() const override { return inner_.peer(); }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override;
  bool is_connected() const override { return inner_.is_connected(); }
  std::string why_unconnected() const override { return inner_.why_unconnected(); }
  std::string remote_address() const override { return inner_.remote_address(); }
  std::string under_way() const override { return inner_.under_way(); }

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  void release() override;
  bool receive(std::span<std::byte> into, unsigned flags) override;

  // Makes progress in both directions. Keeps errors for the next call that sends or receives.
  void progress() noexcept;

  // Passes the next arriving segment over the incoming wire. Returns the time when it is due.
  Clock::time_point admit();

  void quiesce() { is_quiesced_ = true; }

 private:
  struct Header {
    std::int64_t first_ns = 0;  // when its first and last byte reach the receiver's wire
    std::int64_t last_ns = 0;
    std::int64_t flight_ns = 0;  // delay and jitter, included in these times
    std::uint64_t bytes = 0;
  };
  struct Queued {
    Header header;
    AlignedMemory memory;
    unsigned flags = kPlain;
  };
  struct Held {
    std::size_t bytes = 0;
    AlignedMemory memory;
    TransitTimes comes;
    Clock::time_point due{};
  };
  struct Departure {
    Clock::time_point last;
    std::size_t bytes = 0;
  };

  void fail_if_quiesced() const;
  void check_length(std::size_t bytes) const;
  bool has_credit(std::size_t bytes);
  Header depart(std::size_t bytes);
  bool push_header(const Header& header);
  bool push_bytes(std::span<const std::byte> data, unsigned flags);
  bool is_header(const Header& header) const;
  bool pull_bytes();
  std::span<std::byte> arriving_piece(std::size_t from) const;
  void expect_pieces();
  void push();
  void pull();
  void try_to(void (ShapedChannel::*move)(), std::exception_ptr& lost) noexcept;
  void fail_if_out_is_lost() const;
  bool has_room() const;
  Held* front();

  Channel& inner_;
  PrepostedReceives* const expecting_;  // inner_, if it supports preposted receives
  const ShapedChannelSetup setup_;
  SegmentPool& pool_;
  ShapingEvents& events_;
  TokenBucket own_out_;
  TokenBucket own_in_;
  TokenBucket& out_wire_;
  TokenBucket& in_wire_;
  Capabilities capabilities_;
  mutable ChannelStatistics statistics_;
  const std::size_t ahead_bytes_;   // limit of a sender ahead of its wire
  const std::size_t window_bytes_;  // memory limit at either end
  const std::size_t piece_bytes_;   // length of a piece on the channel below
  bool is_quiesced_ = false;
  std::exception_ptr out_lost_;
  std::exception_ptr in_lost_;  // thrown after all earlier segments are read

  // Sending.
  std::deque<Departure> leaving_;  // segments whose last byte has not left the wire yet
  std::size_t leaving_bytes_ = 0;
  std::deque<Queued> queue_;
  std::size_t queued_bytes_ = 0;
  bool is_header_out_ = false;    // of the first segment in the queue
  std::size_t pushed_bytes_ = 0;  // of that segment
  std::uint64_t number_ = 0;
  Clock::time_point comes_after_{};  // arrival of the previous segment, to keep the order
  Clock::time_point refused_until_{};
  AlignedMemory slot_;
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;

  // Receiving.
  Header header_;
  bool has_header_ = false;
  AlignedMemory arriving_;
  std::size_t arrived_bytes_ = 0;  // in arriving_
  std::deque<Held> held_;
  std::size_t held_bytes_ = 0;
  std::size_t admitted_ = 0;  // number of held segments that have passed the wire
  bool is_viewing_ = false;
};

}  // namespace kolo::inline v0::decorators
