// Where connections of this rank are made: those that it opens and those that others open to it.
//
// No pair is connected before one of the two uses its channel. Who has something to send connects
// at once; who waits to receive first leaves that to the sender and connects only when nobody has
// come for kSenderComesWithin, which is also how it learns of a peer that has ended: a rank listens
// as long as its transport lives, so a refused connection means that it does not.
//
// Who connects and does not say hello in time, or says anything else, is a stranger and dropped;
// when too many of them wait the oldest goes. Both of a pair may connect at once: what becomes of
// the two connections is the channel's matter.
//
// Nothing here blocks but the constructor, which waits for all ranks to say where they listen.
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

namespace kolo::tcp {

inline constexpr std::chrono::milliseconds kSenderComesWithin{100};

// Whom connections are for: a channel.
class ConnectionOwner {
 public:
  ConnectionOwner() = default;
  ConnectionOwner(const ConnectionOwner&) = delete;
  ConnectionOwner& operator=(const ConnectionOwner&) = delete;
  virtual ~ConnectionOwner() = default;

  // A connection: of one's own, on which nothing was said yet (`theirs` is null), or one of the
  // peer's with its hello. False: not wanted, and then it is closed.
  virtual bool take(posix::Descriptor& socket, const Hello* theirs, std::uint32_t lane) = 0;

  // The peer can be connected to no more, so that no connection will come; `why` says what to do.
  virtual void cannot_connect(const std::string& why) noexcept = 0;
};

class Listener {
 public:
  // Collective over the request's ranks. Events of its sockets and timer carry the request's size
  // as their token in `watch`, those of connections that a tenant has taken the peer's rank.
  Listener(const TransportRequest& request, const TcpSettings& settings, posix::Epoll& watch);

  void let(int peer, ConnectionOwner& tenant) { owners_[static_cast<std::size_t>(peer)] = &tenant; }

  enum class When { kNow, kIfNobodyComes };

  // Asks for a connection to `peer`; the first call counts, but that kNow hurries.
  void call(int peer, std::uint32_t lane, When when);

  // The same soon, after who answers there has hung up before it said hello.
  void call_again(int peer);

  // Makes what connections can be made now. Error kUnavailable when descriptors run out, as far as
  // somebody waits for a connection: who calls, or `is_waited_for` says so.
  void look(bool is_waited_for = false);

  // Wakes who sleeps at `time`, to look again.
  void wake_at(Clock::time_point time);

  bool is_open() const { return listener_.is_open(); }
  const EndpointAddress& address_of(int peer) const {
    return peer_addresses_[static_cast<std::size_t>(peer)];
  }
  const Token& token() const { return peer_addresses_[0].token; }
  std::chrono::milliseconds on_its_way() const { return settings_.on_its_way; }
  int rank() const { return rank_; }

  // What keeps the connection to `peer` from being made, as far as known: for messages.
  std::string why_unconnected(int peer) const;

  // No connection comes any more.
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
    bool has_tried = false;
    Clock::time_point refused_since{};
    std::string why = "nobody has answered yet";
    bool is_done = false;
  };

  void set_alarm();
  void hear_all();
  void accept_some();
  void drop_oldest();
  bool is_calling() const;
  bool hear(UnknownClient& stranger);
  void greet(UnknownClient& stranger);
  void start(Call& call);
  void advance(Call& call);
  void fail(Call& call, int error);
  void retry(Call& call, std::string why);
  void prepare(const posix::Descriptor& socket, int peer) const;
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
  bool has_left_some_ = false;  // at the listener, for the next look
  std::vector<EndpointAddress> peer_addresses_;
  std::vector<posix::Address> addresses_;
  std::vector<ConnectionOwner*> owners_;
  std::deque<Call> calls_;                     // a tenant may add one while another is at hand
  std::deque<UnknownClient> unknown_clients_;  // oldest first
};

// Where the kernel does not have the congestion control `name`: the text that says so.
std::string no_congestion(const std::string& name);
bool set_congestion(const posix::Descriptor& socket, const std::string& name);

}  // namespace kolo::tcp
