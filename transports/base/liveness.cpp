#include "transports/base/liveness.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "transports/base/address_text.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/socket.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 1ms;
constexpr std::size_t kMostUnknownClients = 64;  // in addition to the expected ranks
constexpr std::size_t kMostAccepted = 64;        // per look()
// Retries before a peer counts as ended. Another process at the rank's address may close every
// connection at once. A real rank closes one only if too many clients are there, which does not
// happen to the same client again and again.
constexpr int kMostHangUps = 1000;
// Calls of look() before a rank ends: enough for what the listeners' queues hold.
constexpr int kLastLooks = 64;

// The data of an epoll event: a peer's rank, or this value for listeners and unknown clients.
constexpr std::uint64_t kSomebodyNew = std::uint64_t{1} << 32;

std::string without_blanks(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

}  // namespace

std::string to_text(const LivenessAddress& a) {
  return fmt::format("{} {} {} {} {}", a.host_identity, a.unix_name, a.tcp_host, a.tcp_port,
                     a.ticket);
}

std::optional<LivenessAddress> liveness_address_from_text(const std::string& text) {
  auto words = stream_of(text);
  LivenessAddress a;
  if (!(words >> a.host_identity >> a.unix_name >> a.tcp_host >> a.tcp_port >> a.ticket))
    return std::nullopt;
  return a;
}

PeerLiveness::PeerLiveness(int rank, int size, std::string tcp_host, Clock::duration patience)
    : rank_(rank), patience_(patience), peers_(static_cast<std::size_t>(size)) {
  std::random_device random;
  own_.ticket = std::uint64_t{random()} << 32 | random();
  own_.host_identity = without_blanks(posix::host_identity());
  own_.tcp_host = without_blanks(tcp_host.empty() ? posix::host_name() : std::move(tcp_host));
  own_.unix_name = "-";
  if (size == 1) return;
  unix_.emplace(size + 16);
  own_.unix_name = unix_->name();
  watch_.add(unix_->descriptor(), EPOLLIN | EPOLLET, kSomebodyNew);
  try {
    tcp_ = posix::listen_on("", 0);
  } catch (const Error&) {
    return;  // no network, so no peers on other hosts
  }
  own_.tcp_port = posix::local_address(tcp_).port();
  watch_.add(tcp_.get(), EPOLLIN | EPOLLET, kSomebodyNew);
}

void PeerLiveness::join_first(int peer) {
  peers_[index_of(peer)].is_joined = true;
  if (addresses_.empty()) return;
  call(peer);
}

void PeerLiveness::look_if_due() {
  const auto now = Clock::now();
  if (now - looked_ < kLookEvery) return;
  looked_ = now;
  look();
}

void PeerLiveness::look() {
  std::array<epoll_event, 64> events;
  std::size_t heard = 0;
  std::span<const epoll_event> news;
  do {
    news = watch_.wait(events, 0);
    heard += news.size();
    // New clients first: a rank that has ended may have left its last word on a new connection.
    if (!news.empty() || !unknown_clients_.empty() || has_left_some_ || is_exhausted_) hear_all();
    for (const epoll_event& event : news) {
      if (event.data.u64 != kSomebodyNew) hear_peer(static_cast<int>(event.data.u64));
    }
    // The limit is for unknown clients, which can cause events without end.
  } while (news.size() == events.size() && heard <= peers_.size() + kMostUnknownClients);
  if (std::exchange(has_unanswered_, false)) call_again();
}

void PeerLiveness::call_again() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const int peer = static_cast<int>(i);
    const Peer& other = peers_[i];
    if (other.is_gone) continue;
    if (other.is_refused) {
      has_unanswered_ |= !lose_refused(peer);
    } else if (other.is_joined && !other.called.socket.is_open() && !other.came.socket.is_open()) {
      call(peer);
    }
  }
}

void PeerLiveness::close() noexcept {
  unix_.reset();
  tcp_.close();
  unknown_clients_.clear();
  for (Peer& peer : peers_) {
    peer.called.socket.close();
    peer.came.socket.close();
  }
}

void PeerLiveness::leave_words(const std::function<std::uint64_t(int peer)>& word_for) noexcept {
  try {
    look();
    for (int i = 0; has_left_some_ && i < kLastLooks; ++i) look();
  } catch (const Error&) {  // no free descriptor: only existing connections get the word
  }
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    for (const Line* line : {&peers_[peer].called, &peers_[peer].came}) {
      if (!line->socket.is_open()) continue;
      const std::uint64_t word = word_for(static_cast<int>(peer));
      posix::send_some(line->socket, &word, sizeof word);
    }
  }
}

void PeerLiveness::lose(int peer) noexcept {
  Peer& lost = peers_[index_of(peer)];
  lost.called.socket.close();
  lost.came.socket.close();
  lost.is_connecting = false;
  if (!std::exchange(lost.is_gone, true)) ++gone_;
}

// --- outgoing connections ---

void PeerLiveness::call(int peer) {
  Peer& called = peers_[index_of(peer)];
  if (called.is_gone || called.called.socket.is_open() || !unix_) return;
  const bool is_near = addresses_[index_of(peer)].host_identity == own_.host_identity;
  if (!(is_near ? call_unix(peer) : call_tcp(peer))) has_unanswered_ = true;
}

// False if the peer's queue is full.
bool PeerLiveness::call_unix(int peer) {
  Peer& called = peers_[index_of(peer)];
  try {
    auto socket = posix::connect_unix(addresses_[index_of(peer)].unix_name);
    if (!socket) return false;
    called.called.socket = std::move(*socket);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost) throw;
    return lose_refused(peer);
  }
  watch_.add(called.called.socket.get(), EPOLLIN, static_cast<std::uint64_t>(peer));
  say_hello(peer);
  return true;
}

// Marks the peer as ended, after all waiting clients were accepted: the peer may have connected
// before its end and left its last word there. False: some clients are still waiting.
bool PeerLiveness::lose_refused(int peer) {
  hear_all();
  if (has_left_some_) return false;
  lose(peer);
  return true;
}

bool PeerLiveness::call_tcp(int peer) {
  Peer& called = peers_[index_of(peer)];
  const LivenessAddress& there = addresses_[index_of(peer)];
  std::string why;
  const auto addresses = posix::resolve(there.tcp_host, there.tcp_port, why);
  // A missing listener means the rank's end only if its address is reachable. Without a route this
  // rank does not watch the peer; the store reports its end.
  if (addresses.empty() || there.tcp_port == 0) return true;
  called.called.socket = posix::start_connecting(addresses.front());
  if (!called.called.socket.is_open())
    posix::throw_system("a socket to rank " + std::to_string(peer));
  called.is_connecting = true;
  watch_.add(called.called.socket.get(), EPOLLIN | EPOLLOUT, static_cast<std::uint64_t>(peer));
  return true;
}

void PeerLiveness::finish_connecting(int peer) {
  Peer& called = peers_[index_of(peer)];
  called.is_connecting = false;
  const int error = posix::connect_result(called.called.socket);
  if (error == ECONNRESET) return hung_up(peer);
  if (error != 0) {
    called.called.socket.close();
    called.is_refused = has_unanswered_ = true;
    return;
  }
  watch_.change(called.called.socket.get(), EPOLLIN, static_cast<std::uint64_t>(peer));
  posix::set_keepalive(called.called.socket);
  say_hello(peer);
}

// Cannot be cut short: the socket's buffer is empty.
void PeerLiveness::say_hello(int peer) {
  const Hello hello{addresses_[index_of(peer)].ticket, static_cast<std::uint64_t>(rank_)};
  Line& line = peers_[index_of(peer)].called;
  line.awaits_welcome = true;
  line.bytes = 0;
  posix::send_some(line.socket, &hello, sizeof hello);
}

// --- incoming connections ---

void PeerLiveness::hear_all() {
  if (!unix_) return;
  accept_some();
  const auto now = Clock::now();
  std::erase_if(unknown_clients_, [&](UnknownClient& unknown_client) {
    return hear(unknown_client) || now > unknown_client.patience;
  });
}

// Reads each new client at once, so that a client with a hello is never dropped as silent. Accepts
// a limited number; the others wait for the next look(), so that the rank's work continues.
void PeerLiveness::accept_some() {
  has_left_some_ = is_exhausted_ = false;
  for (std::size_t accepted = 0; accepted < kMostAccepted; ++accepted) {
    UnknownClient unknown_client{accept_one(), Clock::now() + patience_, {}, 0};
    if (!unknown_client.socket.is_open()) return;
    watch_.add(unknown_client.socket.get(), EPOLLIN | EPOLLET, kSomebodyNew);
    if (hear(unknown_client)) continue;
    unknown_clients_.push_back(std::move(unknown_client));
    if (unknown_clients_.size() > kMostUnknownClients + peers_.size()) drop_oldest();
  }
  has_left_some_ = true;
  look_again_at_listeners();
}

// Reads it once more, since its hello may have arrived meanwhile.
void PeerLiveness::drop_oldest() {
  hear(unknown_clients_.front());
  unknown_clients_.pop_front();
}

// Renews the edge-triggered events, so that clients left in the queues wake a sleeping rank.
void PeerLiveness::look_again_at_listeners() {
  watch_.change(unix_->descriptor(), EPOLLIN | EPOLLET, kSomebodyNew);
  if (tcp_.is_open()) watch_.change(tcp_.get(), EPOLLIN | EPOLLET, kSomebodyNew);
}

// Not open if no client waits, or no descriptor is free. In the second case it first drops unknown
// clients to get a descriptor. If there are none, the client stays in the listener's queue, and
// each look() tries again.
posix::Descriptor PeerLiveness::accept_one() {
  while (true) {
    try {
      if (auto socket = unix_->accept()) return std::move(*socket);
      if (!tcp_.is_open()) return {};
      posix::Descriptor socket = posix::accept_from(tcp_);
      if (socket.is_open()) posix::set_keepalive(socket);
      const bool is_exhausted = !socket.is_open() && (errno == EMFILE || errno == ENFILE);
      const bool is_gone_already = !socket.is_open() && (errno == ECONNABORTED || errno == EPROTO);
      if (is_gone_already) continue;
      if (!is_exhausted) return socket;
    } catch (const Error&) {  // the same on the unix socket
    }
    if (unknown_clients_.empty()) {
      is_exhausted_ = true;
      return {};
    }
    drop_oldest();
  }
}

// Reads from an unknown client. True: remove it from the list (it was a rank, is invalid, or
// closed).
bool PeerLiveness::hear(UnknownClient& unknown_client) {
  auto* const bytes = reinterpret_cast<std::byte*>(&unknown_client.hello);
  const auto got = posix::receive_some(unknown_client.socket, bytes + unknown_client.bytes,
                                       sizeof unknown_client.hello - unknown_client.bytes);
  if (got.is_closed) return true;
  unknown_client.bytes += got.bytes;
  if (unknown_client.bytes < sizeof unknown_client.hello) return false;
  const Hello& hello = unknown_client.hello;
  if (hello.ticket != own_.ticket || hello.rank >= peers_.size()) return true;
  const int peer = static_cast<int>(hello.rank);
  Peer& known = peers_[index_of(peer)];
  if (peer == rank_ || known.is_gone || known.came.socket.is_open()) return true;
  known.came.socket = std::move(unknown_client.socket);
  if (!addresses_.empty()) {  // cannot be cut short: the socket's buffer is empty
    const std::uint64_t welcome = addresses_[index_of(peer)].ticket;
    posix::send_some(known.came.socket, &welcome, sizeof welcome);
  }
  watch_.remove(known.came.socket.get());
  watch_.add(known.came.socket.get(), EPOLLIN, static_cast<std::uint64_t>(peer));
  hear_peer(peer);  // it may have ended meanwhile
  return true;
}

void PeerLiveness::hear_peer(int peer) {
  Peer& other = peers_[index_of(peer)];
  if (other.is_gone) return;
  if (other.is_connecting) {
    finish_connecting(peer);
    if (other.is_gone) return;
  }
  const Heard on_called = hear_line(other.called);
  const Heard on_came = hear_line(other.came);
  for (const Line* line : {&other.called, &other.came}) {
    if (!line->awaits_welcome && line->bytes == sizeof line->word) other.last_word = line->word;
  }
  const bool is_end =
      on_came == Heard::kEnd || on_called == Heard::kEnd || on_called == Heard::kSomebodyElse;
  if (is_end) return lose(peer);
  if (on_called == Heard::kHungUp) hung_up(peer);
}

// The peer may have dropped this rank as an unknown client, so this rank connects again. If the
// peer has ended, that is refused.
void PeerLiveness::hung_up(int peer) {
  Peer& other = peers_[index_of(peer)];
  other.called.socket.close();
  if (++other.hang_ups == kMostHangUps) return lose(peer);
  has_unanswered_ = true;
}

// Reads what has arrived on the connection.
PeerLiveness::Heard PeerLiveness::hear_line(Line& line) const {
  if (!line.socket.is_open()) return Heard::kNothing;
  while (true) {
    std::byte nothing{};
    const std::size_t missing = sizeof line.word - line.bytes;
    std::byte* const place =
        missing > 0 ? reinterpret_cast<std::byte*>(&line.word) + line.bytes : &nothing;
    const auto got = posix::receive_some(line.socket, place, std::max<std::size_t>(missing, 1));
    if (got.is_closed) return line.awaits_welcome ? Heard::kHungUp : Heard::kEnd;
    if (got.bytes == 0) return Heard::kNothing;
    if (missing > 0) line.bytes += got.bytes;
    if (!line.awaits_welcome || line.bytes < sizeof line.word) continue;
    if (line.word != own_.ticket) return Heard::kSomebodyElse;
    line.awaits_welcome = false;
    line.bytes = 0;
  }
}

}  // namespace kolo::inline v0
