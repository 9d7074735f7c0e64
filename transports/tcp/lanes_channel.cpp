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

namespace kolo::tcp {

namespace {

static_assert(std::endian::native == std::endian::little, "headers are copied as they lie");
static_assert(sizeof(ChunkHeader) == 16);

constexpr int kUnsentBytes = 2 * static_cast<int>(kChunkBytes);

}  // namespace

LanesChannel::LanesChannel(Door& door, int peer, std::size_t segment_bytes, int lanes)
    : TcpChannel(door, peer, segment_bytes), most_(static_cast<std::size_t>(lanes)) {}

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
  added.hello = encode({door().token(), door().rank(), peer(), false, lane});
  added.unsaid = added.hello.size();
  counts().connections = lanes_.size();
  const bool has_called_first = lanes_.front()->has_called;
  if (theirs == nullptr) {
    push();  // be it the hello alone: who is silent is a stranger
  } else if (lane == 0 && (!has_called_first || door().rank() > peer())) {
    open_missing_lanes();
  }
  return true;
}

void LanesChannel::open_missing_lanes() {
  for (std::size_t lane = lanes_.size(); lane < most_; ++lane)
    door().call(peer(), static_cast<std::uint32_t>(lane), Door::When::kNow);
}

// --- out ---

void LanesChannel::push() {
  if (lanes_.empty()) ask_for_connection(Door::When::kNow);
  std::size_t refusals = 0;  // in a row
  while (refusals < lanes_.size() && !is_dead()) {
    Lane& lane = *lanes_[turn_++ % lanes_.size()];
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

// False where everything queued has a lane already.
bool LanesChannel::give_chunk(Lane& lane) {
  if (cut_piece_ == queued()) return false;
  const Piece& piece = queued_piece(cut_piece_);
  const std::size_t bytes = std::min(kChunkBytes, piece.bytes - cut_offset_);
  lane.header_out.segment = first_queued_ + static_cast<std::uint32_t>(cut_piece_);
  lane.header_out.offset = static_cast<std::uint32_t>(cut_offset_);
  lane.header_out.bytes = static_cast<std::uint32_t>(bytes);
  lane.header_unsent = sizeof lane.header_out;
  lane.chunk = piece.data + cut_offset_;
  lane.chunk_unsent = bytes;
  cut_offset_ += bytes;
  if (cut_offset_ == piece.bytes) {
    ++cut_piece_;
    cut_offset_ = 0;
  }
  return true;
}

// True when the lane has taken all that it had.
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
  for (std::size_t* unsent : {&lane.unsaid, &lane.header_unsent}) {
    const std::size_t part = std::min(bytes, *unsent);
    *unsent -= part;
    bytes -= part;
  }
  if (bytes == 0) return;
  lane.has_sent_data = true;
  lane.chunk += bytes;
  lane.chunk_unsent -= bytes;
  queued_piece(lane.header_out.segment - first_queued_).unsent -= bytes;
  while (queued() > 0 && queued_piece(0).unsent == 0) {
    pop_piece();
    ++first_queued_;
    --cut_piece_;
  }
}

// --- in ---

bool LanesChannel::pull(std::byte* into, std::size_t bytes) {
  if (is_dead()) throw_if_dead();
  if (lanes_.empty()) ask_for_connection(Door::When::kIfNobodyComes);
  for (std::size_t i = 0; i < lanes_.size() && filled_ < bytes; ++i) {
    while (read(*lanes_[i], into, bytes)) {
    }
    if (is_dead()) throw_if_dead();
  }
  if (filled_ < bytes) {
    const auto has_ended = [](const auto& lane) { return lane->has_ended; };
    if (lanes_.size() < most_) door().look();  // what is missing may come over the next lane
    if (!lanes_.empty() && std::all_of(lanes_.begin(), lanes_.end(), has_ended))
      lose("receive from", 0);
    if (is_dead()) throw_if_dead();
    return false;
  }
  filled_ = 0;
  ++awaited_;
  return true;
}

// False when there is nothing more to read from this lane now.
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
  if (chunk.magic == kChunkMagic && chunk.segment != awaited_) return false;
  if (chunk.magic != kChunkMagic || chunk.offset > bytes || chunk.bytes > bytes - chunk.offset) {
    lose("read from",
         "it sent a chunk of another segment than this rank expects: do all ranks call "
         "the same operations?");
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
  lane.header_in = next;
  lane.header_filled = got - part;
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

// The peer's hello on a lane that this rank opened.
bool LanesChannel::hear(Lane& lane) {
  const auto state = lane.reply.read(lane.socket);
  if (state == HelloReader::State::kWaiting) return false;
  const auto hello = lane.reply.hello();
  lane.is_heard = state == HelloReader::State::kComplete && hello &&
                  hello->token == door().token() && hello->from == peer() &&
                  hello->to == door().rank();
  if (lane.is_heard) return true;
  if (lane.reply.has_begun()) {
    lose("talk to", "what listens there is not that rank");
  } else {
    end(lane, lane.reply.error());
  }
  return false;
}

// The peer ends all lanes when it ends, each behind its last chunk; others may still have some. Who
// has sent no data on its only lane tries another, as in connection_channel.cpp.
void LanesChannel::end(Lane& lane, int error) {
  lane.has_ended = true;
  if (lanes_.size() == 1 && lane.has_called && !lane.is_heard && !lane.has_sent_data) {
    lane.socket.close();
    dropped_ = std::move(lanes_.front());
    lanes_.clear();
    cut_piece_ = cut_offset_ = 0;  // what it was to take
    door().call_again(peer(), "it hung up before it said hello");
  } else if (lane.has_called && !lane.is_heard && !lane.has_sent_data &&
             lane.header_unsent + lane.chunk_unsent == 0) {
    lane.is_void = true;  // a wish that the peer did not grant; what it sends comes by the others
  } else if (error != 0 || lane.header_filled > 0) {
    lose("exchange data with", error);
  }
  counts().connections = lanes_.size();
}

void LanesChannel::close_sockets() noexcept {
  for (const auto& lane : lanes_) {
    if (lane->socket.is_open()) ::shutdown(lane->socket.get(), SHUT_WR);
    lane->socket.close();
  }
  counts().connections = 0;
}

}  // namespace kolo::tcp
