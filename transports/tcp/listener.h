// Listener for incoming TCP connections; it makes this rank's outgoing connections as well.
//
// A pair is connected on the first use of its channel. A sending rank connects at once. A receiving
// rank first waits kSenderComesWithin for its sender to connect, and then connects itself. This
// also detects a peer that has ended, since a rank listens until its transport is destroyed. A peer
// counts as ended once all its reachable addresses refuse.
//
// A connection without a valid hello within hello_timeout is dropped; if too many of them wait, the
// oldest is dropped. If descriptors run out, the oldest is dropped after a twentieth of that time.
// A rank sends its hello at once, perhaps with data behind it, so its connection is not dropped.
// Both ranks of a pair may connect at once: the channel handles the two connections.
//
// A peer may have several addresses. They are tried in turn, each for kAddressTakes at most; the
// one that led to a connection is tried first from then on. The token in the hello makes it safe to
// reach another machine by mistake. A connection has no timeout of its own. It is tried again until
// the operation that needs it ends, by its own timeout (KOLO_TIMEOUT_MS).
//
// Only the constructor blocks: it waits for the addresses of all ranks.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "transports/posix/epoll.h"
#include "transports/posix/socket.h"
#include "transports/posix/timer.h"
#include "transports/tcp/address.h"
#include "transports/tcp/hello.h"
#include "transports/tcp/transport.h"

namespace kolo::inline v0::tcp {

inline constexpr std::chrono::milliseconds kSenderComesWithin{100};
inline constexpr std::chrono::milliseconds kAddressTakes{1000};  // if there are more

// Owner of a pair's connections: a channel.
class ConnectionOwner {
 public:
  ConnectionOwner() = default;
  ConnectionOwner(const ConnectionOwner&) = delete;
  ConnectionOwner& operator=(const ConnectionOwner&) = delete;
  virtual ~ConnectionOwner() = default;

  // Takes a new connection: one opened by this rank, on which nothing was sent yet (`theirs` is
  // null), or one opened by the peer, with its hello. False if unwanted; then it is closed.
  virtual bool take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) = 0;

  // Reports that no connection to the peer is possible any more; `why` tells the user what to do.
  virtual void cannot_connect(const std::string& why) noexcept = 0;
};

class Listener {
 public:
  // Collective over the request's ranks. In `watch`, the token of the listener's sockets and timer
  // is the request's size; the token of a connection with an owner is the peer's rank.
  Listener(const TransportRequest& request, const TcpSettings& settings, posix::Epoll& watch);

  void let(int peer, ConnectionOwner& tenant) { owners_[static_cast<std::size_t>(peer)] = &tenant; }

  enum class When { kNow, kIfNobodyComes };

  // Asks for a connection to `peer`. Repeated calls change nothing, except that kNow starts a
  // planned first attempt at once.
  void call(int peer, std::uint32_t lane, When when);

  // Reconnects later, after the peer has closed a connection before its hello.
  void call_again(int peer);

  // Accepts new connections and makes the connections that are due. Error kUnavailable if
  // descriptors run out while a connection is wanted: by call(), or by `is_waited_for`.
  void look(bool is_waited_for = false);

  // Wakes a sleeping rank at `time`, to call look() again.
  void wake_at(Clock::time_point time);

  bool is_open() const { return listener_.is_open(); }
  const EndpointAddress& address_of(int peer) const {
    return peer_addresses_[static_cast<std::size_t>(peer)];
  }
  const Token& token() const { return peer_addresses_[0].token; }
  std::chrono::milliseconds on_its_way() const { return settings_.on_its_way; }
  int rank() const { return rank_; }

  // Why `peer` is not connected yet, for error messages: such as "no tcp connection to rank 2 was
  // made, at 10.9.0.3:4000 (Connection refused)". Empty if the reason is not known. If this process
  // has no descriptor left, it cannot accept a connection, and does not know which peer opened it.
  // Then the reason is the missing descriptor, for each peer.
  std::string why_unconnected(int peer) const;

  // Stops listening and connecting.
  void close() noexcept;

 private:
  struct UnknownClient {
    posix::Descriptor socket;
    Clock::time_point since;
    HelloReader hello;
  };
  struct Call {
    int peer = 0;
    std::uint32_t lane = 0;
    Clock::time_point next_try;
    posix::Descriptor socket;  // while it is connecting
    Clock::time_point started;
    bool has_tried = false;
    // A round tries each address of the peer once.
    std::size_t address = 0;   // tried now, or next
    std::size_t tried = 0;     // number of addresses tried in this round
    bool is_refused = false;   // by an address of this round
    bool is_in_doubt = false;  // an address of this round gave neither a connection nor a refusal
    std::vector<std::string> why;       // of each address: the last failure; empty: not known
    Clock::time_point refused_since{};  // all addresses
    bool is_done = false;
    bool has_given_up = false;  // no connection was made; the peer may still live
  };

  void set_alarm();
  void hear_all();
  void accept_some();
  void drop_oldest();
  Clock::time_point oldest_may_be_dropped() const;
  bool is_calling() const;
  bool hear(UnknownClient& stranger);
  void greet(UnknownClient& stranger);
  void start(Call& call);
  void advance(Call& call);
  void fail(Call& call, int error);
  void try_next(Call& call, std::string why);
  void end_round(Call& call);
  std::size_t addresses_of(int peer) const {
    return addresses_[static_cast<std::size_t>(peer)].size();
  }
  void prepare(const posix::Descriptor& socket, int peer) const;
  std::string exhausted_text(int error) const;
  [[noreturn]] void throw_exhausted(int error) const;

  const int rank_;
  const int size_;
  const TcpSettings settings_;
  posix::Epoll& watch_;
  posix::Descriptor listener_;
  posix::Timer timer_;
  Clock::time_point alarm_{};
  std::vector<Clock::time_point> wakes_;
  bool is_waited_for_ = false;
  bool has_left_some_ = false;  // connections left to accept in the next look()
  std::string why_kept_out_;    // why the last look() accepted no connection; empty: it could
  std::vector<EndpointAddress> peer_addresses_;
  std::vector<std::vector<posix::Address>> addresses_;  // of each peer
  std::vector<std::size_t> best_;                       // of each peer: the address that works
  std::vector<ConnectionOwner*> owners_;
  std::deque<Call> calls_;                     // an owner may add one while another is in use
  std::deque<UnknownClient> unknown_clients_;  // oldest first
};

// Error text for a congestion control `name` that the kernel does not have.
std::string no_congestion(const std::string& name);
bool set_congestion(const posix::Descriptor& socket, const std::string& name);

}  // namespace kolo::inline v0::tcp
