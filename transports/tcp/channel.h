// One connection as a channel.
//
// Out: a queue of pieces, each a slot of the channel's or memory of the caller's. Whatever is
// queued leaves in one system call, at once; what the socket does not take stays queued, as
// descriptors, not copies, and is pushed by progress() and by everybody who waits for input.
//
// In: exactly as many bytes as the segment asked for needs are read to where they shall lie, and in
// the same system call up to kAheadBytes of what follows into a small buffer, which the next
// segments are served from first. So segments are always contiguous and aligned, nothing large is
// ever moved, and a header with a short payload costs one call.
//
// A segment of no bytes travels as one: otherwise nobody could tell that it has been sent.
#pragma once

#include <sys/uio.h>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "transports/aligned_memory.h"
#include "transports/posix/descriptor.h"
#include "transports/transport.h"

namespace kolo::tcp {

// Of segments that wait to be sent: with the one in view, less than 2 MiB of them for a peer.
inline constexpr std::size_t kQueueLength = 6;
inline constexpr std::size_t kAheadBytes = 4096;

class TcpChannel final : public Channel {
 public:
  // `address` and `rank` (one's own) are for messages.
  TcpChannel(posix::Descriptor socket, int rank, int peer, std::string address,
             std::size_t segment_bytes);

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override;
  void commit(unsigned flags) override;
  bool send(std::span<const std::byte> data, unsigned flags) override;
  bool is_drained() override;

  const std::byte* view(std::size_t bytes) override;
  void release() override;
  bool receive(std::span<std::byte> into) override;

  // Sends what is queued as far as the socket takes it.
  void flush();

  bool has_queued() const { return queued_ > 0; }
  bool is_lost() const { return !lost_.empty(); }
  int descriptor() const { return socket_.get(); }

  // Every later call throws kAborted; what is queued is forgotten, what the kernel has is still
  // sent.
  void close() noexcept;

 private:
  struct Piece {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  void enqueue(const std::byte* data, std::size_t bytes, unsigned flags);
  void pop_sent(std::size_t bytes);
  bool fill(std::byte* into, std::size_t bytes);
  void take_ahead(std::byte* into, std::size_t bytes);
  void receive_more(std::byte* into, std::size_t bytes);
  void finish_segment(std::size_t bytes);
  std::byte* slot(std::size_t index);
  void throw_if_lost() const;
  [[noreturn]] void lose(const char* operation, int error);

  posix::Descriptor socket_;
  const int rank_;
  const int peer_;
  const std::string address_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::string lost_;  // why every call fails, if it does
  bool is_closed_ = false;

  // Out. The queue is a ring; a slot belongs to the place in the queue that it will take.
  std::array<Piece, kQueueLength> queue_;
  std::size_t head_ = 0;
  std::size_t queued_ = 0;
  AlignedMemory slots_;
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;

  // In.
  AlignedMemory segment_;   // the one that is viewed
  std::size_t filled_ = 0;  // of the segment under way, wherever it goes
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
  std::array<std::byte, kAheadBytes> ahead_;
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
};

}  // namespace kolo::tcp
