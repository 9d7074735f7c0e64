// Base class of TCP channels: queues and buffers of segments. Derived classes move the bytes, over
// one connection (connection_channel.h) or several lanes (lanes_channel.h).
//
// Sending: a queue of pieces, each in a slot of the channel or in the caller's memory. A piece is
// sent at once if possible. If the sockets are full or not connected yet, it stays queued (by
// pointer, not copied), and progress() and each waiting receive send the rest.
//
// Receiving: reads the bytes of the requested segment directly to their destination. So segments
// are contiguous and aligned, and no long segment is moved.
//
// An empty segment is sent as one byte, so that its receiver can detect it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "transports/error.h"
#include "transports/tcp/listener.h"
#include "transports/tcp/segment_memory.h"
#include "transports/transport.h"

namespace kolo::inline v0::tcp {

// Length of the send queue in segments.
inline constexpr std::size_t kQueueLength = SegmentMemory::kSlots;

class TcpChannel : public Channel, public ConnectionOwner {
 public:
  // `segment_bytes`: preferred length of segments; `longest_bytes`: longest allowed.
  TcpChannel(Listener& listener, int peer, std::size_t segment_bytes, std::size_t longest_bytes);

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

  // Sends as much of the queue as the sockets take.
  void flush();

  bool has_queued() const { return queued_ > 0; }
  bool is_lost() const { return !lost_.empty(); }
  bool is_dead() const { return is_closed_ || is_lost(); }

  // Sends the goodbye after all data, when this rank ends. With it the peer can tell the end of one
  // connection from the end of all data. True once the sockets have taken it.
  virtual bool say_goodbye() = 0;

  // True if no more connections of this pair can come.
  virtual bool is_settled() const = 0;

  // Makes every later call throw kAborted. Drops the queue; the kernel still sends the data it has.
  void close() noexcept;

 protected:
  struct Piece {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t unsent = 0;  // for sending parts over several lanes
    bool is_in_slot = false;
  };

  // Sends as much of the queue as possible now; reports a failure by lose().
  virtual void push() = 0;

  // True once the whole segment, of at least one byte, lies at `into`. Throws on failure.
  virtual bool pull(std::byte* into, std::size_t bytes) = 0;

  virtual void close_sockets() noexcept = 0;

  // True if the peer has announced another connection with data that has not arrived yet.
  virtual bool is_more_announced() const = 0;

  // True if a hello has shown that a connection of this pair leads to the peer.
  virtual bool has_heard_peer() const = 0;

  // True if the peer's host has stopped acknowledging data of a socket.
  virtual bool is_unacknowledged() const = 0;

  Listener& listener() const { return listener_; }
  std::size_t queued() const { return queued_; }
  // Whether a slot is free for a segment that is not short.
  bool has_slot_for(std::size_t bytes) const {
    return !SegmentMemory::is_short(bytes) && memory_.has_slot();
  }
  // Copies the unsent rest of the last piece, which is in the caller's memory, into a slot. The
  // piece must not be short, and a slot must be free.
  void keep_last_piece();
  Piece& queued_piece(std::size_t index) { return queue_[(head_ + index) % kQueueLength]; }
  void pop_piece();
  ChannelStatistics& counts() { return statistics_; }

  // Asks the listener for a connection and lets it make progress.
  void ask_for_connection(Listener::When when);

  // Called when all known connections have ended and none was announced. Whether another connection
  // may still arrive: for a limited time, from a peer on another host.
  bool may_be_on_its_way();
  void note_arrival() { ended_ = {}; }

  void throw_if_dead() const;
  void lose(const char* operation, int error) noexcept;  // 0: the peer closed the connection
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
  std::string lost_;  // if not empty, every call fails with this text
  ErrorCode lost_code_ = ErrorCode::kPeerLost;
  bool is_closed_ = false;
  Clock::time_point ended_{};  // when the last connection ended; zero while there is one

  SegmentMemory memory_;

  // Sending. The queue is a ring. A short segment that is not in the caller's memory lies in the
  // cell with the index of its queue entry.
  std::array<Piece, kQueueLength> queue_;
  std::size_t head_ = 0;
  std::size_t queued_ = 0;
  std::span<std::byte> reserved_;
  bool is_reserved_ = false;

  // Receiving.
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
};

inline bool is_not_now(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace kolo::inline v0::tcp
