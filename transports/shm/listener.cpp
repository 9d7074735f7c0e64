#include "transports/shm/listener.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "transports/base/check.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/host/memory_barrier.h"
#include "transports/posix/shared_memory.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0::shm {

namespace {

using namespace std::chrono_literals;

constexpr auto kRetryEvery = 1ms;
constexpr int kRegions = 2;  // descriptors per peer: its region and this rank's
constexpr const char* kAnyPeer = "a peer";

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
std::span<std::byte> writable_bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Hello hello_in(std::span<const std::byte> said) {
  Hello hello;
  std::memcpy(&hello, said.data(), sizeof hello);
  return hello;
}

Hello hello_for(int rank, const EndpointAddress& called) {
  Hello hello;
  hello.rank = rank;
  std::copy(called.ticket, called.ticket + 2, hello.ticket);
  return hello;
}

std::string no_descriptor(const std::string& peer, const std::string& why) {
  return fmt::format(
      "no file descriptor is left to share memory with {} ({}); ring and tree algorithms need "
      "fewer, since they connect fewer pairs of ranks",
      peer, why);
}

}  // namespace

Listener::Listener(const TransportRequest& request, const Layout& layout, bool has_remote_barriers,
                   posix::Epoll& watch)
    : rank_(request.rank),
      size_(request.size),
      layout_(layout),
      watch_(watch),
      channels_(static_cast<std::size_t>(request.size)),
      pending_connections_(house(), channels_.size()) {
  if (size_ == 1) return;
  own_.has_barriers = has_remote_barriers && posix::accept_barriers();
  const auto why_not = posix::why_no_shared_memory();
  if (why_not.empty()) {
    listener_.emplace(size_ + 16);
    watch_.add(listener_->descriptor(), EPOLLIN | EPOLLET, static_cast<std::uint64_t>(size_));
  }
  publish(request, why_not);
  check_addresses(request);
}

void Listener::publish(const TransportRequest& request, const std::string& why_not) {
  std::random_device random;
  for (auto& word : own_.ticket) word = std::uint64_t{random()} << 32 | random();
  own_.segment_bytes = layout_.segment_bytes();
  own_.process = ::getpid();
  own_.trial = own_read_probe();
  own_.host = posix::host_identity();
  own_.reason = why_not;
  if (listener_) own_.socket = listener_->name();
  const auto texts = exchange(*request.store, rank_, size_, "address", to_text(own_),
                              request.deadline, "share memory (shm)");
  for (int peer = 0; peer < size_; ++peer)
    addresses_.push_back(address_from_text(texts[index_of(peer)], peer));
}

// Without ranks left out, all ranks check the same addresses, so all of them fail or none. Ranks
// that are named as peers were found to be of this host in another way.
void Listener::check_addresses(const TransportRequest& request) const {
  const auto fail = [this](ErrorCode code, int peer, const std::string& what) {
    throw Error(code, peer, fmt::format("rank {}: {} {}", rank_, name_of(peer), what));
  };
  for (int peer = 0; peer < size_; ++peer) {
    const EndpointAddress& address = address_of(peer);
    if (peer != rank_ && !request.has_peer(peer)) continue;
    if (request.peers.empty() && address.host != own_.host) {
      fail(ErrorCode::kUnavailable, peer,
           fmt::format(
               "is on a different host or in a different network namespace ({}, here {}): shm "
               "joins ranks of one host; use tcp",
               address.host, own_.host));
    }
    if (address.socket.empty()) {
      fail(ErrorCode::kUnavailable, peer, "cannot share memory (" + address.reason + "): use tcp");
    }
    if (address.segment_bytes != own_.segment_bytes) {
      fail(ErrorCode::kProtocol, peer,
           fmt::format("has segments of {} bytes, this rank {}: set the same on every rank",
                       address.segment_bytes, own_.segment_bytes));
    }
  }
}

std::string Listener::name_of(int peer) const {
  return fmt::format("rank {} (process {})", peer, address_of(peer).process);
}

Pair Listener::pair_with(int peer) const {
  Pair pair;
  pair.rank = rank_;
  pair.peer = peer;
  pair.layout = layout_;
  pair.has_barriers = own_.has_barriers && address_of(peer).has_barriers;
  pair.process = address_of(peer).process;
  pair.trial = address_of(peer).trial;
  pair.peer_name = name_of(peer);
  return pair;
}

void Listener::connect(ShmChannel& channel, bool is_sending) {
  if (!listener_) return;
  const auto known = std::find_if(calls_.begin(), calls_.end(),
                                  [&](const Call& call) { return call.channel == &channel; });
  if (known == calls_.end()) {
    const auto due = Clock::now() + (is_sending ? 0ms : kSenderComesWithin);
    calls_.push_back({&channel, due, !is_sending, false});
  } else {
    if (is_sending && !known->has_tried) known->due = Clock::now();
    known->is_receiving |= !is_sending;
  }
  look();
}

void Listener::look() {
  if (!listener_) return;
  hear_all();
  make_calls(false);
}

bool Listener::hurry() {
  if (!calls_.empty()) {
    accept_all();
    make_calls(true);
  }
  const bool is_stuck = std::any_of(calls_.begin(), calls_.end(),
                                    [](const Call& call) { return !call.channel->has_socket(); });
  return std::exchange(has_news_, false) || is_stuck;
}

void Listener::finish(Deadline deadline) noexcept {
  const auto has_unsaid = [this] {
    return std::any_of(calls_.begin(), calls_.end(), [](const Call& call) {
      return call.channel->has_region() && !call.channel->has_socket();
    });
  };
  try {
    while (has_unsaid() && Clock::now() < deadline) {
      look();
      ::poll(nullptr, 0, 1);
    }
  } catch (const std::exception&) {  // no descriptor is left; ignored, as this rank ends
  }
}

void Listener::close() noexcept {
  listener_.reset();
  pending_connections_.clear();
  calls_.clear();
}

// --- accepted connections ---

posix::PendingConnections::Handlers Listener::house() {
  posix::PendingConnections::Handlers house;
  house.hello_bytes = sizeof(Hello);
  house.descriptors = kRegions;
  house.is_hello = [this](auto said) { return is_for_this_rank(hello_in(said)); };
  house.let_in = [this](auto said, posix::Descriptor socket, posix::Descriptor region) {
    welcome(hello_in(said).rank, std::move(socket), std::move(region));
  };
  house.watch = [this](int socket) {
    watch_.add(socket, EPOLLIN | EPOLLET, static_cast<std::uint64_t>(size_));
  };
  return house;
}

bool Listener::is_for_this_rank(const Hello& hello) const {
  return hello.rank >= 0 && hello.rank < size_ && channels_[index_of(hello.rank)] != nullptr &&
         hello == hello_for(hello.rank, own_);
}

void Listener::hear_all() {
  pending_connections_.look(*listener_);
  require_room();
}

void Listener::accept_all() {
  pending_connections_.accept_from(*listener_);
  require_room();
}

// A lack of descriptors is an error only while a channel waits for its peer. Otherwise later calls
// retry.
void Listener::require_room() const {
  const std::string& why = pending_connections_.why_kept_out();
  if (why.empty() || !is_waited_for()) return;
  throw_exhausted(kNoPeer, kAnyPeer, why);
}

std::string Listener::why_kept_out() const {
  const std::string& why = pending_connections_.why_kept_out();
  if (!why.empty()) return no_descriptor(kAnyPeer, why);
  return lacks_room_ ? no_descriptor(kAnyPeer, posix::error_text(EMFILE)) : "";
}

// True if a channel of this rank waits for its peer.
bool Listener::is_waited_for() const {
  return std::any_of(calls_.begin(), calls_.end(), [](const Call& call) {
    return call.is_receiving || !call.channel->has_socket();
  });
}

// Handles a valid hello: its ticket has proved that the peer is of this job.
void Listener::welcome(int peer, posix::Descriptor socket, posix::Descriptor region) {
  ShmChannel& channel = *channels_[index_of(peer)];
  if (channel.is_attached() || channel.is_dead()) return;
  has_news_ = true;
  if (!channel.attach(std::move(region), posix::peer_process(socket.get()))) return;
  // If this rank has connected as well, it has sent its hello already.
  if (!channel.has_socket() && !answer(channel, socket)) return;
  channel.forget_descriptor();
  take(channel, std::move(socket));
}

bool Listener::answer(ShmChannel& channel, const posix::Descriptor& socket) {
  try {
    say_hello(channel, socket, own_);  // if the peer has ended, a later receive reports it
    return true;
  } catch (const Error& error) {
    channel.kill(error.code(), error.what());
    return false;
  }
}

void Listener::take(ShmChannel& channel, posix::Descriptor socket) {
  watch_.remove(socket.get());
  watch_.add(socket.get(), EPOLLIN, static_cast<std::uint64_t>(channel.peer()));
  channel.add_socket(std::move(socket));
}

// --- connections made by this rank ---

void Listener::make_calls(bool is_hurried) {
  const auto now = Clock::now();
  lacks_room_ = false;
  for (Call& call : calls_) {
    ShmChannel& channel = *call.channel;
    hear_answer(call);
    const bool is_due = !channel.is_attached() && !channel.is_dead() && !channel.has_socket();
    if (is_due && (is_hurried || call.due <= now)) make(call);
  }
  std::erase_if(calls_, [](const Call& call) {
    return call.channel->is_attached() || call.channel->is_dead();
  });
}

void Listener::make(Call& call) {
  ShmChannel& channel = *call.channel;
  call.has_tried = true;
  call.due = Clock::now() + kRetryEvery;
  channel.share();
  auto socket = reach(channel);
  if (!socket || channel.is_attached() || channel.is_dead()) return;
  if (say_hello(channel, *socket, address_of(channel.peer()))) take(channel, std::move(*socket));
}

// Returns nothing if the peer's listen queue is full, or if the channel is now attached or dead.
std::optional<posix::Descriptor> Listener::reach(ShmChannel& channel) {
  while (true) {
    try {
      return posix::connect_unix(address_of(channel.peer()).socket);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kPeerLost) {
        hear_all();  // the peer may have connected and sent its hello before it ended
        has_news_ = true;
        if (!pending_connections_.has_left_some()) find_gone(channel);  // its hello may still come
        return std::nullopt;
      }
      if (!pending_connections_.drop_oldest_silent()) {
        throw_exhausted(channel.peer(), name_of(channel.peer()), error.what());
      }
    }
  }
}

void Listener::find_gone(ShmChannel& channel) {
  if (channel.is_attached()) return;
  channel.kill(ErrorCode::kPeerLost,
               fmt::format("rank {}: {} is gone: no process listens on its shm socket any more; it "
                           "has ended, and its own output may say why",
                           rank_, name_of(channel.peer())));
}

// Receives the answer on the socket that this rank has opened. If that socket has ended, the next
// connection attempt finds out why.
void Listener::hear_answer(const Call& call) {
  ShmChannel& channel = *call.channel;
  if (channel.is_attached() || channel.is_dead() || !channel.has_socket()) return;
  if (!posix::has_room_beside(channel.socket(), kRegions)) {
    lacks_room_ = true;
    if (!call.is_receiving) return;
    throw_exhausted(channel.peer(), name_of(channel.peer()), posix::error_text(EMFILE));
  }
  Hello hello;
  auto message = channel.hear_first(writable_bytes_of(hello));
  if (message.what != posix::Received::kMessage) return;
  has_news_ = true;
  const Hello expected = hello_for(channel.peer(), address_of(channel.peer()));
  if (message.bytes != sizeof hello || hello != expected) {
    return channel.kill(ErrorCode::kProtocol,
                        fmt::format("rank {}: {} has sent an invalid hello (shm): run the same "
                                    "build of kolo",
                                    rank_, name_of(channel.peer())));
  }
  if (channel.attach(std::move(message.passed), posix::peer_process(channel.socket())))
    channel.forget_descriptor();
}

bool Listener::say_hello(ShmChannel& channel, const posix::Descriptor& socket,
                         const EndpointAddress& called) const {
  return posix::send_message(socket.get(), bytes_of(hello_for(rank_, called)), channel.share());
}

void Listener::throw_exhausted(int peer, const std::string& peer_name,
                               const std::string& why) const {
  throw Error(ErrorCode::kUnavailable, peer,
              fmt::format("rank {}: {}", rank_, no_descriptor(peer_name, why)));
}

}  // namespace kolo::inline v0::shm
