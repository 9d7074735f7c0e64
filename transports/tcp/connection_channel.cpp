#include "transports/tcp/connection_channel.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace kolo::inline v0::tcp {

namespace {

// Sends all pieces in one system call; results as send().
ssize_t send_pieces(const posix::Descriptor& socket, std::span<iovec> pieces) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (pieces.size() == 1)
    return ::send(socket.get(), pieces[0].iov_base, pieces[0].iov_len, kFlags);
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  if (bytes > kCopiedBytes) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    return ::sendmsg(socket.get(), &message, kFlags);
  }
  std::array<std::byte, kCopiedBytes> together;
  std::byte* end = together.data();
  for (const iovec& piece : pieces) {
    std::memcpy(end, piece.iov_base, piece.iov_len);
    end += piece.iov_len;
  }
  return ::send(socket.get(), together.data(), bytes, kFlags);
}

}  // namespace

// --- connecting ---

// There is one for every other rank of the job, and most of them never connect.
static_assert(sizeof(ConnectionChannel) <= 1024);

bool ConnectionChannel::take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) {
  if (is_dead() || lane != 0) return false;
  ahead_.resize(kLongAheadBytes);
  const bool is_lower = listener().rank() < peer();
  if (theirs == nullptr) {
    if (socket_.is_open()) return false;  // the peer was faster
    socket_ = std::move(socket);
    has_called_ = true;
    speak(false);
    push();  // sends at least the hello, as the peer drops silent connections
  } else if (!socket_.is_open()) {
    socket_ = std::move(socket);
    speak(false);
  } else if (!has_called_ || has_earlier_ || (is_heard_ && !awaits_earlier_)) {
    return false;  // a peer never connects twice
  } else if (is_lower) {
    earlier_ = std::move(socket);
    has_earlier_ = true;
  } else {
    socket_ = std::move(socket);
    has_called_ = is_heard_ = awaits_earlier_ = false;
    speak(std::exchange(has_sent_data_, false));
  }
  note_arrival();
  count_connections();
  return true;
}

// The hello is sent together with the next data.
void ConnectionChannel::speak(bool follows_another) {
  follows_another_ = follows_another;
  hello_ = encode({listener().token(), listener().rank(), peer(), follows_another, 0});
  unsaid_ = hello_.size();
}

std::string ConnectionChannel::remote_address() const { return posix::remote_host(socket_); }

// If the peer opened socket_, it will not connect again.
bool ConnectionChannel::is_settled() const {
  if (is_lost()) return true;
  if (!socket_.is_open() || !has_called_) return socket_.is_open();
  return is_heard_ && (!awaits_earlier_ || (has_earlier_ && !earlier_.is_open()));
}

void ConnectionChannel::count_connections() {
  counts().connections = (socket_.is_open() ? 1U : 0U) + (earlier_.is_open() ? 1U : 0U);
}

// --- sending ---

// The kernel copies the part that the socket takes at once; only the rest needs a slot.
bool ConnectionChannel::send_copy(std::span<const std::byte> data, unsigned flags) {
  if ((flags & kMore) != 0 || !has_slot_for(data.size())) return TcpChannel::send_copy(data, flags);
  if (!send(data, flags)) return false;
  if (queued() > 0) keep_last_piece();
  return true;
}

void ConnectionChannel::push() {
  if (!socket_.is_open()) {
    ask_for_connection(Listener::When::kNow);
    if (!socket_.is_open()) return;
  }
  if (is_untried() && queued() > 0) {
    hear();
    if (!socket_.is_open() || is_dead()) return;
  }
  while (queued() > 0 || (unsaid_ > 0 && has_called_)) {
    std::array<iovec, kQueueLength + 1> pieces;
    std::size_t count = 0;
    if (unsaid_ > 0) pieces[count++] = {hello_.data() + hello_.size() - unsaid_, unsaid_};
    for (std::size_t i = 0; i < queued(); ++i) {
      const Piece& piece = queued_piece(i);
      pieces[count++] = {const_cast<std::byte*>(piece.data), piece.bytes};
    }
    ++counts().system_calls;
    const ssize_t sent = send_pieces(socket_, {pieces.data(), count});
    if (sent < 0) {
      const int error = errno;
      if (!is_not_now(error) && !tries_again()) lose("send to", error);
      return;
    }
    pop_sent(static_cast<std::size_t>(sent));
  }
}

void ConnectionChannel::pop_sent(std::size_t bytes) {
  if (unsaid_ > 0) {
    const std::size_t hello = std::min(bytes, unsaid_);
    unsaid_ -= hello;
    bytes -= hello;
    has_sent_data_ = bytes > 0;
  } else {
    has_sent_data_ = true;
  }
  while (bytes > 0) {
    Piece& piece = queued_piece(0);
    const std::size_t part = std::min(bytes, piece.bytes);
    piece.data += part;
    piece.bytes -= part;
    bytes -= part;
    if (piece.bytes > 0) return;
    pop_piece();
  }
}

// True if only the hello was sent on the connection that this rank opened. A peer that has not
// answered it may have closed the connection, and data sent now would be lost.
bool ConnectionChannel::is_untried() const {
  return has_called_ && !is_heard_ && !has_sent_data_ && unsaid_ == 0;
}

// --- receiving ---

bool ConnectionChannel::pull(std::byte* into, std::size_t bytes) {
  if (filled_ < bytes) take_ahead(into, bytes);
  if (filled_ < bytes) receive_more(into, bytes);
  if (filled_ < bytes) return false;
  filled_ = 0;
  return true;
}

void ConnectionChannel::take_ahead(std::byte* into, std::size_t bytes) {
  const std::size_t part = std::min(bytes - filled_, ahead_end_ - ahead_begin_);
  if (part == 0) return;
  std::memcpy(into + filled_, ahead_.data() + ahead_begin_, part);
  filled_ += part;
  ahead_begin_ += part;
}

// Requires an empty ahead buffer.
void ConnectionChannel::receive_more(std::byte* into, std::size_t bytes) {
  throw_if_dead();
  const posix::Descriptor* const from = is_plain_ ? &socket_ : source();
  if (from == nullptr) return throw_if_dead();
  const bool is_short = bytes - filled_ <= kShortBytes;
  ++counts().system_calls;
  const ssize_t got = is_short ? ::recv(from->get(), ahead_.data(), ahead_.size(), MSG_DONTWAIT)
                               : receive_straight(*from, into + filled_, bytes - filled_);
  if (got < 0 && is_not_now(errno)) return;
  if (got == 0 && from == &earlier_) {
    earlier_.close();
    count_connections();
    return receive_more(into, bytes);
  }
  if (got <= 0) {
    lose("receive from", got == 0 ? 0 : errno);
    throw_if_dead();
  }
  const auto received = static_cast<std::size_t>(got);
  const std::size_t part = is_short ? 0 : std::min(received, bytes - filled_);
  filled_ += part;
  ahead_begin_ = 0;
  ahead_end_ = received - part;
  take_ahead(into, bytes);
}

// Receives at the destination, and following bytes into the ahead buffer; results as recvmsg().
ssize_t ConnectionChannel::receive_straight(const posix::Descriptor& from, std::byte* into,
                                            std::size_t bytes) {
  std::array<iovec, 2> pieces = {{{into, bytes}, {ahead_.data(), kAheadBytes}}};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return ::recvmsg(from.get(), &message, MSG_DONTWAIT);
}

// Socket of the next bytes, or null while it is unknown.
const posix::Descriptor* ConnectionChannel::source() {
  if (!socket_.is_open()) ask_for_connection(Listener::When::kIfNobodyComes);
  if (!socket_.is_open()) return nullptr;
  if (!earlier_.is_open() && has_called_ && !has_earlier_)
    listener().look();  // it may have arrived
  if (earlier_.is_open()) return &earlier_;
  if (has_called_ && !is_heard_ && !hear()) return nullptr;
  if (awaits_earlier_ && !has_earlier_) return nullptr;
  is_plain_ = true;
  return &socket_;
}

// Reads the peer's hello on the connection that this rank opened.
bool ConnectionChannel::hear() {
  const auto state = reply_.read(socket_);
  if (state == HelloReader::State::kWaiting) return false;
  const auto hello = reply_.hello();
  const bool is_right = state == HelloReader::State::kComplete && hello &&
                        hello->token == listener().token() && hello->from == peer() &&
                        hello->to == listener().rank();
  if (is_right) {
    is_heard_ = true;
    awaits_earlier_ = hello->follows_another;
    return true;
  }
  if (state == HelloReader::State::kComplete || reply_.is_other()) {
    lose("talk to", "another program listens there");
  } else {
    end_unheard(reply_.error());
  }
  return false;
}

// Handles the end of the connection that this rank opened, before the peer's hello on it.
void ConnectionChannel::end_unheard(int error) {
  if (tries_again()) return;
  if (!has_earlier_) {
    listener().look();  // the peer's own connection may have arrived since
    if (!has_called_ || has_earlier_ || may_be_on_its_way()) return;
  }
  lose("receive from", error);
}

// Reconnects if no data was sent on the connection that this rank opened, as nothing can be lost
// then. If the peer has ended, the next attempt finds out, unless the peer connects before.
bool ConnectionChannel::tries_again() {
  if (!has_called_ || is_heard_ || has_sent_data_ || has_earlier_) return false;
  socket_.close();
  has_called_ = false;
  unsaid_ = 0;
  reply_ = {};
  count_connections();
  listener().call_again(peer());
  return true;
}

// --- closing ---

// With two connections, the peer may see the end of one before it sees the other.
bool ConnectionChannel::say_goodbye() {
  if (std::exchange(has_said_goodbye_, true)) return true;
  if (earlier_.is_open()) {
    const auto hello = encode({listener().token(), listener().rank(), peer(), true, 0});
    posix::send_some(earlier_, hello.data(), hello.size());
  }
  if (follows_another_ && unsaid_ > 0)
    posix::send_some(socket_, hello_.data() + hello_.size() - unsaid_, unsaid_);
  return true;
}

void ConnectionChannel::close_sockets() noexcept {
  if (socket_.is_open()) ::shutdown(socket_.get(), SHUT_WR);
  socket_.close();
  earlier_.close();
  count_connections();
}

}  // namespace kolo::inline v0::tcp
