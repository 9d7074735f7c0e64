// Channel over several TCP connections, the *lanes*. It is for networks where one connection is
// slower than the path: because of pacing, per-connection link sharing, or waits for lost packets.
//
// A segment is cut into chunks of kChunkBytes. Round robin, each chunk goes to the next lane whose
// socket takes it, behind a header with its place. A lane buffers only what it will send soon
// (TCP_NOTSENT_LOWAT), so that a slow lane does not collect chunks. The receiver reads a chunk of
// the requested segment directly to its place; a chunk of a later segment stays in its lane. The
// oldest unread chunk is always the first of its lane, so no deadlock is possible. Chunks must
// begin at multiples of kChunkBytes, each once: otherwise overlapping chunks would count as missing
// bytes.
//
// A header, little-endian: u32 kChunkMagic, u32 segment (counted from 0, modulo 2^32), u32 offset
// in it, u32 bytes. A rank that ends says goodbye on every lane: a header with 0 bytes, whose
// segment is the number of all segments sent. It is needed between hosts, where all known lanes may
// end while another lane has not arrived yet.
//
// The accepting rank opens the missing lanes; if both ranks have connected, the higher rank does. A
// pair works with as many lanes as it gets.
#pragma once

#include <sys/uio.h>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "transports/tcp/channel.h"

namespace kolo::inline v0::tcp {

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
  LanesChannel(Listener& listener, int peer, std::size_t segment_bytes, std::size_t longest_bytes,
               int lanes);

  bool is_connected() const override { return !lanes_.empty() || is_dead(); }
  std::string remote_address() const override {
    return lanes_.empty() ? "" : posix::remote_host(lanes_.front()->socket);
  }
  bool is_settled() const override { return lanes_.size() >= most_ || is_lost(); }
  bool take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) override;
  bool say_goodbye() override;

 protected:
  void push() override;
  bool pull(std::byte* into, std::size_t bytes) override;
  void close_sockets() noexcept override;
  bool is_more_announced() const override;
  bool has_heard_peer() const override;
  bool is_unacknowledged() const override;

 private:
  struct Lane {
    posix::Descriptor socket;
    bool has_called = false;  // this rank opened it
    bool is_heard = false;    // the peer's hello has been read
    bool has_ended = false;   // no more data comes
    bool is_void = false;     // the peer refused it: never used
    HelloReader reply;

    // Sending.
    std::array<std::byte, kHelloBytes> hello{};
    std::size_t unsaid = 0;  // bytes of hello to send
    ChunkHeader header_out;
    std::size_t header_unsent = 0;
    const std::byte* chunk = nullptr;
    std::size_t chunk_unsent = 0;
    bool has_sent_data = false;
    bool has_said_goodbye = false;

    // Receiving.
    ChunkHeader header_in;
    std::size_t header_filled = 0;
    bool is_in_chunk = false;  // the header has been checked
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
  std::unique_ptr<Lane> dropped_;  // kept alive, as callers of end() may still refer to it
  std::size_t turn_ = 0;           // for round robin

  // Sending: the next chunk starts at `cut_offset_` of piece `cut_piece_` in the queue.
  std::size_t cut_piece_ = 0;
  std::size_t cut_offset_ = 0;
  std::vector<Chunk> returned_;     // by lanes that ended before they sent them
  std::uint32_t first_queued_ = 0;  // number of the first segment in the queue

  // Receiving.
  std::uint32_t awaited_ = 0;                     // number of the current segment
  std::size_t filled_ = 0;                        // received bytes of that segment
  std::vector<bool> begun_;                       // its chunks that some lane has started
  std::optional<std::uint32_t> segments_in_all_;  // once the peer has said goodbye
};

}  // namespace kolo::inline v0::tcp
