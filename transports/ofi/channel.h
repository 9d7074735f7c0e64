// Channel over libfabric: segments are tagged messages to and from one peer.
//
// Sending: a window of segments, sent from slots of the channel or from the caller's memory. The
// provider copies short segments at once (inject). The peer's credit limits the window.
//
// Receiving: receives are posted in the order of the segments, which is also the order in which the
// provider matches them. A segment of receive() goes into the caller's memory (zero copy), a
// segment of view() into a buffer of this channel. Expected segments have preposted receives.
// Without one, a provider waits for this rank before it transfers a long segment (rendezvous),
// which costs a round trip. If the caller declares no expectations, the channel guesses: after a
// viewed or short segment it preposts buffers for the following ones. receive() of a segment in
// such a buffer copies it.
//
// Credit travels with the segments of the other direction. A credit message is sent once half of
// the window is owed. Credit stays owed until the peer has surely read it: a peer that takes
// nothing does not read the credit inside its unread segments, and may wait for that credit only.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "transports/base/aligned_memory.h"
#include "transports/base/liveness.h"
#include "transports/base/preposted_receives.h"
#include "transports/error.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/tag.h"
#include "transports/transport.h"

namespace kolo::inline v0::ofi {

// Largest number of segments in flight each way on one channel, if the provider's queues allow it.
// Large enough to make the cost of credit small for short segments.
inline constexpr std::size_t kLongestWindow = 32;

// Slots that can be filled and in flight at once.
inline constexpr std::size_t kSlots = 8;

// Receives posted at once, if the provider's queues have room.
inline constexpr std::size_t kMostReceives = 8;

// Parameters that both ends of a channel share.
struct Pair {
  int rank = 0;
  int peer = 0;
  std::size_t segment_bytes = 0;  // preferred
  std::size_t longest_bytes = 0;  // for transfers from memory to memory
  std::size_t window = kSlots;    // the same at both ends; at least kSlots
  std::uint32_t own_token = 0;
  std::uint32_t peer_token = 0;
  std::size_t receives = 1;  // posted at once
  std::size_t buffers = 1;   // of these, receives into the channel's buffers; at most `receives`
  Clock::duration patience = std::chrono::seconds(5);  // while the provider refuses credit
};

class OfiChannel final : public Channel, public PrepostedReceives, private Owner {
 public:
  OfiChannel(Endpoint& endpoint, PeerLiveness& liveness, const Pair& pair);

  int peer() const override { return pair_.peer; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }
  std::string under_way() const override;

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  void release() override;
  bool receive(std::span<std::byte> into, unsigned flags) override;

  std::size_t expected_segments() const override { return in_.size() - 1; }
  bool expect(std::size_t ahead, std::span<std::byte> into) override;

  // Handles a message of the peer that is not a segment.
  void hear(const ImmediateData& message);

  // Posts the messages that could not be posted before.
  void push();
  // As push(), for callers that poll. Error kPeerLost if the peer is alive but the provider keeps
  // refusing the credit for it. Nothing else would report that.
  void push_owed();

  bool has_unposted() const { return posted_ < sent_ || owes_control_; }

  // True if the peer has ended, and this rank still waits for its last data. Such a wait ends by
  // time only, so a sleeping thread would not be woken.
  bool is_ending() const;

  // Ends the channel in order. True once the peer has all sent data, or has ended.
  bool say_goodbye();

  void close() noexcept { is_closed_ = true; }

  // True if the provider still holds unsent data of this channel, the peer is lost, or the peer
  // ended without a last word. Knows the peer's state as of the last look of the liveness object.
  bool is_broken_off() const;

  // Cancels the receives that are posted.
  void cancel_receives() {
    for (Incoming& each : in_) endpoint_.cancel(each.operation);
  }

  // Segments received from the peer. The last word to the peer: it then knows that it need not send
  // them again, whatever its provider has reported.
  std::uint64_t taken() const { return taken_; }

 private:
  struct Outgoing {
    Operation operation;
    std::span<const std::byte> data;
    bool is_done = false;
    std::uint64_t says_taken = 0;  // the value of taken_ that this message carries
  };
  struct Incoming {
    Operation operation;
    std::span<std::byte> place;
    bool is_own = false;  // in a buffer of this channel
    bool has_come = false;
    std::size_t bytes = 0;
  };

  void done(Operation& operation, std::size_t bytes, std::uint64_t word) override;
  void failed(Operation& operation, const std::string& why) override;

  Outgoing& outgoing(std::uint64_t segment) { return out_[segment % out_.size()]; }
  Incoming& incoming(std::uint64_t segment) { return in_[segment % in_.size()]; }
  bool has_room() const {
    return sent_ - completed_ < pair_.window && sent_ - taken_there_ < pair_.window;
  }
  bool make_room(const char* operation);
  std::byte* slot() {
    return slots_.get() + slots_used_ % kSlots * slot_stride(pair_.longest_bytes);
  }
  void enqueue(std::span<const std::byte> data);
  Posted post(Outgoing& segment);
  void push_control();
  void give_credit();
  void bear_refusal();
  Posted say(MessageKind kind, std::uint64_t count);
  void hear_taken(std::uint64_t low);
  std::uint64_t word_of(MessageKind kind, std::uint64_t count) const;

  bool await(std::size_t bytes, std::span<std::byte> into, bool is_own);
  bool may_post(std::size_t bytes);
  bool post_next(std::span<std::byte> into, bool is_own);
  bool has_free_buffer() const { return buffers_posted_ - buffers_free_ < pair_.buffers; }
  void post_ahead(std::size_t receives);
  void take(std::size_t bytes, bool goes_on);

  void throw_if_closed() const;
  void throw_if_dead() const;
  void find_lost(const char* operation);
  bool has_peer_taken_all();
  void find_end(const char* operation);
  void lose(ErrorCode code, const std::string& text);
  std::string cannot(const char* operation, const std::string& why) const;

  Endpoint& endpoint_;
  PeerLiveness& liveness_;
  const Pair pair_;
  const std::size_t most_unannounced_;  // rxm sends longer ones by rendezvous
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::optional<Error> lost_;
  bool is_closed_ = false;

  // Out, counted in segments: completed_ <= posted_ <= sent_.
  std::vector<Outgoing> out_;
  AlignedMemory slots_;
  std::array<std::uint64_t, kSlots>
      slot_until_{};  // the slot is free once so many segments are completed
  std::uint64_t slots_used_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;    // the provider no longer needs their memory
  std::uint64_t taken_there_ = 0;  // as reported by the peer
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  unsigned fruitless_ = 0;  // consecutive calls of is_drained() that found unsent data

  // In: taken_ <= asked_.
  std::vector<Incoming> in_;
  AlignedMemory buffers_;
  std::uint64_t taken_ = 0;
  std::uint64_t asked_ = 0;  // receives posted
  std::uint64_t told_ = 0;   // the value of taken_ that the peer surely knows
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
  std::uint64_t buffers_posted_ = 0;  // of asked_, into buffers of the channel
  std::uint64_t buffers_free_ = 0;    // of those, taken
  bool looks_ahead_ = false;          // prepost buffers for the next segments
  bool is_told_ = false;              // the caller declares what to expect

  // End of the channel.
  bool owes_control_ = false;                       // credit or kHeard could not be sent
  std::optional<Clock::time_point> refused_since_;  // since when the provider has refused credit
  bool has_refused_credit_ = false;                 // this refusal is why the peer is lost
  bool owes_heard_ = false;                         // kEnd has arrived and is not answered yet
  std::optional<std::uint64_t> total_;  // segments that the peer has sent; set once it is done
  Clock::time_point gone_since_{};      // when the peer ended with data still expected
  bool has_said_end_ = false;
  bool is_heard_ = false;
};

}  // namespace kolo::inline v0::ofi
