#include "transports/tcp/lanes_channel.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

namespace kolo::inline v0::tcp {

namespace {

static_assert(std::endian::native == std::endian::little, "headers are copied as they lie");
static_assert(sizeof(ChunkHeader) == 16);

// Order of sequence numbers modulo 2^32.
bool is_before(std::uint32_t a, std::uint32_t b) {
  return a != b && static_cast<std::int32_t>(b - a) > 0;
}

constexpr int kUnsentBytes = 2 * static_cast<int>(kChunkBytes);

}  // namespace

LanesChannel::LanesChannel(Listener& listener, int peer, std::size_t segment_bytes,
                           std::size_t longest_bytes, int lanes)
    : TcpChannel(listener, peer, segment_bytes, longest_bytes),
      most_(static_cast<std::size_t>(lanes)) {}

// --- connecting ---

bool LanesChannel::take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) {
  if (is_dead() || lanes_.size() >= 2 * most_) return false;
  static_cast<void>(::setsockopt(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes,
                                 sizeof kUnsentBytes));
  lanes_.push_back(std::make_unique<Lane>());
  Lane& added = *lanes_.back();
  added.socket = std::move(socket);
  added.has_called = theirs == nullptr;
  added.is_heard = theirs != nullptr;
  added.hello = encode({listener().token(), listener().rank(), peer(), false, lane});
  added.unsaid = added.hello.size();
  counts().connections = lanes_.size();
  note_arrival();
  const bool has_called_first = lanes_.front()->has_called;
  if (theirs == nullptr) {
    push();  // sends at least the hello, as the peer drops silent connections
  } else if (lane == 0 && (!has_called_first || listener().rank() > peer())) {
    open_missing_lanes();
  }
  return true;
}

void LanesChannel::open_missing_lanes() {
  for (std::size_t lane = lanes_.size(); lane < most_; ++lane)
    listener().call(peer(), static_cast<std::uint32_t>(lane), Listener::When::kNow);
}

// --- sending ---

void LanesChannel::push() {
  if (lanes_.empty()) ask_for_connection(Listener::When::kNow);
  std::size_t refusals = 0;  // in a row
  while (refusals < lanes_.size() && !is_dead()) {
    Lane& lane = *lanes_[turn_++ % lanes_.size()];
    const bool is_untried = lane.has_called && !lane.is_heard && !lane.has_sent_data;
    // A peer that has not answered the hello may have closed the lane, and chunks would be lost.
    if (is_untried && lane.unsaid == 0 && !lane.has_ended && has_chunks()) hear(lane);
    if (lanes_.empty()) return;  // hear() has dropped the only lane, to reconnect
    if (lane.is_void) {
      ++refusals;
      continue;
    }
    const bool has_hello = lane.has_called && lane.unsaid > 0;
    const bool has_chunk = lane.header_unsent + lane.chunk_unsent > 0 || give_chunk(lane);
    if ((has_hello || has_chunk) && write(lane)) {
      refusals = 0;
    } else {
      ++refusals;
    }
  }
}

LanesChannel::Chunk LanesChannel::cut_chunk() {
  const Piece& piece = queued_piece(cut_piece_);
  const std::size_t bytes = std::min(kChunkBytes, piece.bytes - cut_offset_);
  Chunk chunk;
  chunk.header.segment = first_queued_ + static_cast<std::uint32_t>(cut_piece_);
  chunk.header.offset = static_cast<std::uint32_t>(cut_offset_);
  chunk.header.bytes = static_cast<std::uint32_t>(bytes);
  chunk.data = piece.data + cut_offset_;
  cut_offset_ += bytes;
  if (cut_offset_ == piece.bytes) {
    ++cut_piece_;
    cut_offset_ = 0;
  }
  return chunk;
}

// False if all queued chunks have a lane already.
bool LanesChannel::give_chunk(Lane& lane) {
  if (!has_chunks()) return false;
  Chunk chunk;
  if (returned_.empty()) {
    chunk = cut_chunk();
  } else {
    chunk = returned_.back();
    returned_.pop_back();
  }
  lane.header_out = chunk.header;
  lane.header_unsent = sizeof lane.header_out;
  lane.chunk = chunk.data;
  lane.chunk_unsent = chunk.header.bytes;
  return true;
}

// Puts the chunk of a lane back, of which nothing was sent.
void LanesChannel::return_chunk(Lane& lane) {
  if (lane.chunk_unsent > 0) returned_.push_back({lane.header_out, lane.chunk});
  lane.header_unsent = lane.chunk_unsent = 0;
}

// True if the socket has taken all bytes of the lane.
bool LanesChannel::write(Lane& lane) {
  const auto* header = reinterpret_cast<const std::byte*>(&lane.header_out);
  std::array<iovec, 3> pieces = {{
      {lane.hello.data() + lane.hello.size() - lane.unsaid, lane.unsaid},
      {const_cast<std::byte*>(header) + sizeof lane.header_out - lane.header_unsent,
       lane.header_unsent},
      {const_cast<std::byte*>(lane.chunk), lane.chunk_unsent},
  }};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  ++counts().system_calls;
  const ssize_t sent = ::sendmsg(lane.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    pop_sent(lane, static_cast<std::size_t>(sent));
  } else if (!is_not_now(errno)) {
    end(lane, errno);
  }
  return sent >= 0 && lane.unsaid + lane.header_unsent + lane.chunk_unsent == 0;
}

void LanesChannel::pop_sent(Lane& lane, std::size_t bytes) {
  const std::size_t hello = std::min(bytes, lane.unsaid);
  lane.unsaid -= hello;
  bytes -= hello;
  if (bytes == 0) return;
  lane.has_sent_data = true;
  const std::size_t header = std::min(bytes, lane.header_unsent);
  lane.header_unsent -= header;
  bytes -= header;
  if (bytes == 0) return;
  lane.chunk += bytes;
  lane.chunk_unsent -= bytes;
  queued_piece(lane.header_out.segment - first_queued_).unsent -= bytes;
  while (queued() > 0 && queued_piece(0).unsent == 0) {
    pop_piece();
    ++first_queued_;
    --cut_piece_;
  }
}

// --- receiving ---

bool LanesChannel::pull(std::byte* into, std::size_t bytes) {
  if (is_dead()) throw_if_dead();
  if (lanes_.empty()) ask_for_connection(Listener::When::kIfNobodyComes);
  for (std::size_t i = 0; i < lanes_.size() && filled_ < bytes; ++i) {
    while (read(*lanes_[i], into, bytes)) {
    }
    if (is_dead()) throw_if_dead();
  }
  if (filled_ < bytes) {
    if (lanes_.size() < most_) listener().look(true);  // the rest may come over a new lane
    check_end();
    if (is_dead()) throw_if_dead();
    return false;
  }
  filled_ = 0;
  begun_.clear();
  ++awaited_;
  return true;
}

// False if there is no more to read from this lane now.
bool LanesChannel::read(Lane& lane, std::byte* into, std::size_t bytes) {
  if (lane.has_ended || filled_ == bytes) return false;
  if (!lane.is_heard && !hear(lane)) return false;
  auto* const header = reinterpret_cast<std::byte*>(&lane.header_in);
  constexpr std::size_t kHeaderBytes = sizeof lane.header_in;
  if (lane.header_filled < kHeaderBytes) {
    iovec rest = {header + lane.header_filled, kHeaderBytes - lane.header_filled};
    lane.header_filled += receive_some(lane, &rest, 1);
    if (lane.header_filled < kHeaderBytes) return false;
  }
  const ChunkHeader& chunk = lane.header_in;
  if (lane.has_heard_goodbye) {
    lose("read from", "it sent data after its goodbye");
    return false;
  }
  if (chunk.magic == kChunkMagic && chunk.bytes == 0) {
    lane.has_heard_goodbye = true;
    segments_in_all_ = chunk.segment;
    lane.header_filled = 0;
    return true;
  }
  if (chunk.magic == kChunkMagic && is_before(awaited_, chunk.segment)) return false;
  if (!is_awaited(chunk, bytes)) {
    lose("read from",
         "it sent a chunk of a different segment than this rank expects: do all ranks call "
         "the same operations?");
    return false;
  }
  if (!begin(lane)) {
    lose("read from", "it sent a part of a segment twice: run the same build of kolo");
    return false;
  }
  ChunkHeader next;
  const std::size_t left = chunk.bytes - lane.chunk_filled;
  std::array<iovec, 2> pieces = {
      {{into + chunk.offset + lane.chunk_filled, left}, {&next, sizeof next}}};
  const std::size_t got = receive_some(lane, pieces.data(), pieces.size());
  const std::size_t part = std::min(got, left);
  filled_ += part;
  lane.chunk_filled += part;
  if (part < left) return false;
  lane.chunk_filled = 0;
  lane.is_in_chunk = false;
  lane.header_in = next;
  lane.header_filled = got - part;
  return true;
}

// Whether the chunk belongs to the current segment of `bytes` and is cut at the right places.
bool LanesChannel::is_awaited(const ChunkHeader& chunk, std::size_t bytes) const {
  return chunk.magic == kChunkMagic && chunk.segment == awaited_ &&
         chunk.offset % kChunkBytes == 0 && chunk.offset < bytes &&
         chunk.bytes == std::min(kChunkBytes, bytes - chunk.offset);
}

// Marks the lane's chunk as started. False if any lane has started it before.
bool LanesChannel::begin(Lane& lane) {
  if (lane.is_in_chunk) return true;
  const std::size_t index = lane.header_in.offset / kChunkBytes;
  if (begun_.size() <= index) begun_.resize(index + 1);
  if (begun_[index]) return false;
  lane.is_in_chunk = begun_[index] = true;
  return true;
}

std::size_t LanesChannel::receive_some(Lane& lane, iovec* pieces, std::size_t count) {
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  ++counts().system_calls;
  const ssize_t got = ::recvmsg(lane.socket.get(), &message, MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0 || !is_not_now(errno)) end(lane, got == 0 ? 0 : errno);
  return 0;
}

// Reads the peer's hello on a lane that this rank opened.
bool LanesChannel::hear(Lane& lane) {
  const auto state = lane.reply.read(lane.socket);
  if (state == HelloReader::State::kWaiting) return false;
  const auto hello = lane.reply.hello();
  lane.is_heard = state == HelloReader::State::kComplete && hello &&
                  hello->token == listener().token() && hello->from == peer() &&
                  hello->to == listener().rank();
  if (lane.is_heard) return true;
  if (state == HelloReader::State::kComplete || lane.reply.is_other()) {
    lose("talk to", "another program listens there");
  } else if (lanes_.size() == 1 && lane.has_sent_data) {
    lane.has_ended = true;  // the peer may have connected itself; check_end() decides
  } else {
    end(lane, lane.reply.error());
  }
  return false;
}

bool LanesChannel::is_more_announced() const {
  return segments_in_all_ && is_before(awaited_, *segments_in_all_);
}

bool LanesChannel::has_heard_peer() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->is_heard; });
}

bool LanesChannel::is_unacknowledged() const {
  return std::ranges::any_of(
      lanes_, [](const auto& lane) { return posix::is_unacknowledged(lane->socket); });
}

// Reports a lost peer if all known lanes have ended and no other lane can arrive.
void LanesChannel::check_end() {
  const auto has_ended = [](const auto& lane) { return lane->has_ended; };
  if (lanes_.empty() || !std::all_of(lanes_.begin(), lanes_.end(), has_ended)) return;
  if (segments_in_all_ ? is_more_announced() : may_be_on_its_way()) return;
  lose("receive from", 0);
}

// Handles the end of a lane. A peer that ends closes each lane behind its last chunk, so other
// lanes may still hold chunks. If this rank has sent no data on its only lane, it reconnects, as in
// connection_channel.cpp.
void LanesChannel::end(Lane& lane, int error) {
  lane.has_ended = true;
  const bool is_untried = lane.has_called && !lane.is_heard && !lane.has_sent_data;
  if (is_untried) return_chunk(lane);
  if (is_untried && lanes_.size() == 1) {
    lane.socket.close();
    dropped_ = std::move(lanes_.front());
    lanes_.clear();
    listener().call_again(peer());
  } else if (is_untried) {
    lane.is_void = true;  // the peer did not want this extra lane; the others carry all data
  } else if (error != 0 || lane.header_filled > 0) {
    lose("exchange data with", error);
  }
  counts().connections = lanes_.size();
}

bool LanesChannel::say_goodbye() {
  bool is_said = true;
  for (std::size_t i = 0; i < lanes_.size() && !is_dead(); ++i) {
    Lane& lane = *lanes_[i];
    if (lane.is_void) continue;
    if (!std::exchange(lane.has_said_goodbye, true)) {
      lane.header_out = {kChunkMagic, first_queued_, 0, 0};
      lane.header_unsent = sizeof lane.header_out;
    }
    if (lane.header_unsent > 0) is_said &= write(lane);
  }
  return is_said || is_dead();
}

void LanesChannel::close_sockets() noexcept {
  for (const auto& lane : lanes_) {
    if (lane->socket.is_open()) ::shutdown(lane->socket.get(), SHUT_WR);
    lane->socket.close();
  }
  counts().connections = 0;
}

}  // namespace kolo::inline v0::tcp
