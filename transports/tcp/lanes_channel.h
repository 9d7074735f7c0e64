// Several connections, the lanes, as one channel: for networks where one connection is slower than
// the way, for it is paced, shares a link per connection, or waits for a lost packet.
//
// A segment is cut into chunks of kChunkBytes. Each goes to the next lane, in turn, whose socket
// takes it, behind a header that says where it belongs; a lane takes no more than it will soon send
// (TCP_NOTSENT_LOWAT), so that a slow one does not hoard. The receiver reads a chunk of the segment
// asked for straight to its place; one of a later segment stays in its lane until its turn comes.
// The oldest unread chunk is always the first of its lane, so nobody waits in a circle. Chunks
// begin at multiples of kChunkBytes, each once: a peer that says otherwise is refused, for the
// bytes of two that overlap would count for some that never came.
//
// A header, little-endian: u32 kChunkMagic, u32 segment (counted from 0, modulo 2^32), u32 offset
// in it, u32 bytes. Who ends says goodbye on every lane: a header of no bytes, whose segment is the
// number of all segments that were sent. For between hosts all lanes that have come may be at their
// end while one is still on its way.
//
// Who was called opens the lanes that are still missing: the higher rank, where both have called.
// A pair goes on with the lanes that it gets.
#pragma once

#include <sys/uio.h>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transports/tcp/channel.h"

namespace kolo::tcp {

inline constexpr std::size_t kChunkBytes = 64 * 1024;
inline constexpr std::uint32_t kChunkMagic = 0x4b'4e'48'43;

struct ChunkHeader {
  std::uint32_t magic = kChunkMagic;
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

class LanesChannel final : public TcpChannel {
 public:
  LanesChannel(Listener& door, int peer, std::size_t segment_bytes, std::size_t longest_bytes,
               int lanes);

  bool is_connected() const override { return !lanes_.empty() || is_dead(); }
  bool is_settled() const override { return lanes_.size() >= most_ || is_lost(); }
  bool take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) override;
  bool say_goodbye() override;

 protected:
  void push() override;
  bool pull(std::byte* into, std::size_t bytes) override;
  void close_sockets() noexcept override;
  bool is_more_announced() const override;

 private:
  struct Lane {
    posix::Descriptor socket;
    bool has_called = false;  // this rank opened it
    bool is_heard = false;    // the peer's hello has been read
    bool has_ended = false;   // nothing comes any more
    bool is_void = false;     // it never came about: nothing has passed, and nothing shall
    HelloReader reply;

    // Out.
    std::array<std::byte, kHelloBytes> hello{};
    std::size_t unsaid = 0;  // of its bytes
    ChunkHeader header_out;
    std::size_t header_unsent = 0;
    const std::byte* chunk = nullptr;
    std::size_t chunk_unsent = 0;
    bool has_sent_data = false;
    bool has_said_goodbye = false;

    // In.
    ChunkHeader header_in;
    std::size_t header_filled = 0;
    bool is_in_chunk = false;  // its header was found right
    std::size_t chunk_filled = 0;
    bool has_heard_goodbye = false;
  };

  struct Chunk {
    ChunkHeader header;
    const std::byte* data = nullptr;
  };

  void open_missing_lanes();
  bool has_chunks() const { return cut_piece_ < queued() || !returned_.empty(); }
  Chunk cut_chunk();
  bool give_chunk(Lane& lane);
  void return_chunk(Lane& lane);
  bool write(Lane& lane);
  void pop_sent(Lane& lane, std::size_t bytes);
  bool read(Lane& lane, std::byte* into, std::size_t bytes);
  bool is_awaited(const ChunkHeader& chunk, std::size_t bytes) const;
  bool begin(Lane& lane);
  std::size_t receive_some(Lane& lane, iovec* pieces, std::size_t count);
  bool hear(Lane& lane);
  void check_end();
  void end(Lane& lane, int error);

  const std::size_t most_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Lane> dropped_;  // the last one, which may still be at hand
  std::size_t turn_ = 0;

  // Out: the next chunk is of the queue's piece `cut_piece_`, from `cut_offset_`.
  std::size_t cut_piece_ = 0;
  std::size_t cut_offset_ = 0;
  std::vector<Chunk> returned_;     // by lanes that took nothing of them
  std::uint32_t first_queued_ = 0;  // the number of the queue's first segment

  // In.
  std::uint32_t awaited_ = 0;                     // the number of the segment under way
  std::size_t filled_ = 0;                        // of its bytes
  std::vector<bool> begun_;                       // its chunks that a lane has, or has had
  std::optional<std::uint32_t> segments_in_all_;  // once the peer has said goodbye
};

}  // namespace kolo::tcp
