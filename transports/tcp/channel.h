// Segments on their way out of a rank and into it; what they travel on is the derived classes'
// matter: one connection (connection_channel.h) or several lanes (lanes_channel.h).
//
// Out: a queue of pieces, each a slot of the channel's or memory of the caller's. Whatever is
// queued leaves at once; what the sockets do not take, or no connection is there to take, stays
// queued, as descriptors, not copies, and is pushed by progress() and by everybody who waits for
// input.
//
// In: exactly as many bytes as the segment asked for needs are read to where they shall lie. So
// segments are always contiguous and aligned, and nothing large is ever moved.
//
// A segment of no bytes travels as one: otherwise nobody could tell that it has been sent.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "transports/error.h"
#include "transports/tcp/listener.h"
#include "transports/tcp/segment_memory.h"
#include "transports/transport.h"

namespace kolo::tcp {

// Of segments that wait to be sent.
inline constexpr std::size_t kQueueLength = SegmentMemory::kSlots;

class TcpChannel : public Channel, public ConnectionOwner {
 public:
  // Segments are `segment_bytes` as a rule, and up to `longest_bytes` where somebody wants it.
  TcpChannel(Listener& door, int peer, std::size_t segment_bytes, std::size_t longest_bytes);

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }
  std::string why_unconnected() const override;

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  void release() override;
  bool receive(std::span<std::byte> into, unsigned flags) override;

  void cannot_connect(const std::string& why) noexcept override;

  // Sends what is queued as far as the sockets take it.
  void flush();

  bool has_queued() const { return queued_ > 0; }
  bool is_lost() const { return !lost_.empty(); }
  bool is_dead() const { return is_closed_ || is_lost(); }

  // What is to be said when this rank ends, once all is drained: so that its peer tells the end of
  // a connection, whichever comes first, from the end of all that was sent. True when the sockets
  // have taken it.
  virtual bool say_goodbye() = 0;

  // No connection of this pair is still to come.
  virtual bool is_settled() const = 0;

  // Every later call throws kAborted; what is queued is forgotten, what the kernel has is still
  // sent.
  void close() noexcept;

 protected:
  struct Piece {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t unsent = 0;  // for who sends parts of it over several lanes
    bool is_in_slot = false;
  };

  // Sends of the queue what can be sent now; a failure is noted with lose().
  virtual void push() = 0;

  // True once the whole segment, of at least one byte, lies at `into`; a failure is thrown.
  virtual bool pull(std::byte* into, std::size_t bytes) = 0;

  virtual void close_sockets() noexcept = 0;

  // What the peer has sent is still to come by a connection that it has announced.
  virtual bool is_more_announced() const = 0;

  Listener& door() const { return listener_; }
  std::size_t queued() const { return queued_; }
  // Whether a segment that is not short would find a slot.
  bool has_slot_for(std::size_t bytes) const {
    return !SegmentMemory::is_short(bytes) && memory_.has_slot();
  }
  // What is left of the last piece of the queue, which is the caller's memory and not short, goes
  // into a slot. There must be one.
  void keep_last_piece();
  Piece& queued_piece(std::size_t index) { return queue_[(head_ + index) % kQueueLength]; }
  void pop_piece();
  ChannelStatistics& counts() { return statistics_; }

  // Asks the door for a connection and lets it do what it can.
  void ask_for_connection(Listener::When when);

  // All connections that have come are at their end, and nothing was announced. Whether another
  // may be on its way: for a while, from a peer of another host.
  bool may_be_on_its_way();
  void note_arrival() { ended_ = {}; }

  void throw_if_dead() const;
  void lose(const char* operation, int error) noexcept;  // 0: it closed the connection
  void lose(const char* operation, const std::string& why) noexcept;

 private:
  void throw_if_closed() const {
    if (is_closed_) [[unlikely]]
      fail_as_closed();
  }
  [[noreturn]] void fail_as_closed() const;
  void enqueue(std::span<const std::byte> data, bool is_in_slot, unsigned flags);
  std::byte* place_for(std::size_t bytes);
  bool fill(std::byte* into, std::size_t bytes);
  void finish_segment(std::size_t bytes);

  Listener& listener_;
  const int peer_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::string lost_;  // why every call fails, if it does
  ErrorCode lost_code_ = ErrorCode::kPeerLost;
  bool is_closed_ = false;
  Clock::time_point ended_{};  // the last connection; zero while there is one

  SegmentMemory memory_;

  // Out. The queue is a ring; a short segment that is not the caller's lies in the cell of the
  // place that it has there.
  std::array<Piece, kQueueLength> queue_;
  std::size_t head_ = 0;
  std::size_t queued_ = 0;
  std::span<std::byte> reserved_;
  bool is_reserved_ = false;

  // In.
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
};

inline bool is_not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace kolo::tcp
