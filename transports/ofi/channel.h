// Segments as tagged messages to and from one peer.
//
// Out: a window of segments, each sent from a slot of the channel's or from memory of the caller's;
// short ones are copied by the provider at once. The window is as long as the peer's credit.
//
// In: receives are posted in the order of the segments, which is how the provider matches them. A
// segment that receive() asks for goes straight into the caller's memory; one that view() asks for
// into a buffer of this channel's. Those that are expected are posted as well, so that they need
// not wait for this rank: a provider asks its peer for a long one, and it costs a turn of both.
// Where nothing is expected, a guess: what was viewed last, or was short, is followed by more that
// go into buffers. receive() of what has come into such a buffer copies it.
//
// Credit goes back with the segments of the other direction, or by itself once half of the window
// is owed. It is owed until it has surely been heard: a peer that takes nothing meanwhile does not
// hear what its unread segments say, and may wait for nothing else than credit.
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

namespace kolo::ofi {

// Segments of a channel under way each way: so many that credit costs a short one little, where the
// provider's queues let all channels have as many.
inline constexpr std::size_t kLongestWindow = 32;

// Slots that can be filled and under way at once.
inline constexpr std::size_t kSlots = 8;

// Receives posted at once, where the provider's queues have room.
inline constexpr std::size_t kMostReceives = 8;

// What both ends of a channel are made of.
struct Pair {
  int rank = 0;
  int peer = 0;
  std::size_t segment_bytes = 0;  // preferred
  std::size_t longest_bytes = 0;  // of what goes from memory to memory
  std::size_t window = kSlots;    // the same at both ends; at least kSlots
  std::uint32_t own_token = 0;
  std::uint32_t peer_token = 0;
  std::size_t receives = 1;  // posted at once
  std::size_t buffers = 1;   // of them into buffers of the channel's; at most `receives`
  Clock::duration patience = std::chrono::seconds(5);  // with a provider that refuses credit
};

class OfiChannel final : public Channel, public PrepostedReceives, private Owner {
 public:
  OfiChannel(Endpoint& endpoint, PeerLiveness& lifeline, const Pair& pair);

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

  // A message of the peer's that is no segment.
  void hear(const ImmediateData& message);

  // Posts what could not be posted before.
  void push();
  // The same, for who asks all the time. Error kPeerLost where the peer, who is there, is to have
  // credit and the provider refuses it for ever: nobody else would notice.
  void push_owed();

  bool has_unposted() const { return posted_ < sent_ || owes_control_; }

  // The peer is gone, and what it may have sent is still waited for: nothing would wake a sleeper
  // when that is over.
  bool is_ending() const;

  // What this rank does when it is done: true once the peer has all that was sent, or is gone.
  bool say_goodbye();

  void close() noexcept { is_closed_ = true; }

  // Whether the provider still has something of this channel's to send, or the peer is lost, or is
  // gone without a word, as far as the lifeline has noticed.
  bool is_broken_off() const;

  // Asks for the end of what is under way towards this rank.
  void cancel_receives() {
    for (Incoming& each : in_) endpoint_.cancel(each.operation);
  }

  // Segments of the peer's: the last word to it, by which it knows that they need not be sent any
  // more, whatever the provider has said of them.
  std::uint64_t taken() const { return taken_; }

 private:
  struct Outgoing {
    Operation operation;
    std::span<const std::byte> data;
    bool is_done = false;
    std::uint64_t says_taken = 0;  // taken_, as it tells the peer
  };
  struct Incoming {
    Operation operation;
    std::span<std::byte> place;
    bool is_own = false;  // a buffer of this channel's
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
  const std::size_t most_unannounced_;  // rxm announces longer ones, and fetches them
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::optional<Error> lost_;
  bool is_closed_ = false;

  // Out, counted in segments: completed_ <= posted_ <= sent_.
  std::vector<Outgoing> out_;
  AlignedMemory slots_;
  std::array<std::uint64_t, kSlots> slot_until_{};  // the slot is free once so many are completed
  std::uint64_t slots_used_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;    // the provider needs their memory no more
  std::uint64_t taken_there_ = 0;  // as the peer has said
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  unsigned fruitless_ = 0;  // questions in a row whether all has left

  // In: taken_ <= asked_.
  std::vector<Incoming> in_;
  AlignedMemory buffers_;
  std::uint64_t taken_ = 0;
  std::uint64_t asked_ = 0;  // receives posted
  std::uint64_t told_ = 0;   // taken_, as the peer surely knows it
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
  std::uint64_t buffers_posted_ = 0;  // of asked_
  std::uint64_t buffers_free_ = 0;    // of those, taken
  bool looks_ahead_ = false;          // what comes next is received into buffers, unasked
  bool is_told_ = false;              // the owner says what to expect

  // The end.
  bool owes_control_ = false;                       // credit or kHeard could not be sent
  std::optional<Clock::time_point> refused_since_;  // credit, for ever as the provider says
  bool has_refused_credit_ = false;                 // why it is lost
  bool owes_heard_ = false;                         // kEnd has come and was not answered yet
  std::optional<std::uint64_t> total_;  // segments that the peer has sent, once it is done
  Clock::time_point gone_since_{};      // while more was said to come
  bool has_said_end_ = false;
  bool is_heard_ = false;
};

}  // namespace kolo::ofi
