// Listener that connects the ranks of one host on the first use of their channel.
//
// Each rank listens on a unix socket whose name the kernel chooses. It publishes the name in the
// store with a *ticket*, a random number that only readers of the store know. The first sender
// connects. Its one message carries a hello (magic, version, the peer's ticket, its own rank) and
// the descriptor of its region (layout.h). It continues at once: it may fill the region, and even
// end, before the peer has reacted. The peer answers on the same socket with its hello and its
// region. If both connect at once, each already gets the other's hello, and both sockets stay: each
// rank sends on the socket that it opened and receives on both.
//
// A receiving rank waits for its sender to connect for kSenderComesWithin, or until it goes to
// sleep; then it connects itself. A rank listens as long as its transport lives, so a refused
// connection means that the peer has ended.
//
// Connections without a valid hello are dropped after a timeout (posix/pending_connections.h). The
// sockets stay open: they wake sleeping ranks, and their end reports the death of a peer.
//
// Only the constructor blocks: it waits for the addresses of all ranks.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "transports/posix/epoll.h"
#include "transports/posix/pending_connections.h"
#include "transports/posix/unix_socket.h"
#include "transports/registry.h"
#include "transports/shm/address.h"
#include "transports/shm/channel.h"
#include "transports/shm/hello.h"

namespace kolo::inline v0::shm {

inline constexpr std::chrono::milliseconds kSenderComesWithin{1};

class Listener final : public Connector {
 public:
  // Collective over the request's ranks. In `watch`, the token of the listener and of sockets
  // without a hello is the request's size; the token of a channel's socket is the peer's rank.
  // Errors: kUnavailable if ranks are on different hosts or one of them has no memfd (every rank
  // gets this error with that rank's number); kDeadline with the missing ranks; kProtocol if builds
  // or segment sizes differ; kAborted if a failure is posted meanwhile.
  Listener(const TransportRequest& request, const Layout& layout, bool has_remote_barriers,
           posix::Epoll& watch);

  // The constructor's argument for a channel to `peer`.
  Pair pair_with(int peer) const;
  void let(int peer, ShmChannel& channel) { channels_[index_of(peer)] = &channel; }

  void connect(ShmChannel& channel, bool is_sending) override;
  std::string why_kept_out() const override;

  // Accepts new connections and makes the connections that are due. Error kUnavailable if
  // descriptors run out while a channel of this rank waits for its peer.
  void look();

  // Whether look() has work to do even without an event.
  bool is_busy() const {
    return !pending_connections_.is_empty() || !calls_.empty() ||
           pending_connections_.has_left_some();
  }

  // Called before this rank sleeps: connects to all peers that it waits for. True if this rank must
  // not sleep now: something has arrived since the last call, or a connection must be retried.
  bool hurry();

  // Before the transport ends: retries the connections of channels that have made their region.
  void finish(Deadline deadline) noexcept;

  // Stops listening and connecting.
  void close() noexcept;

 private:
  // A connection that this rank wants to make.
  struct Call {
    ShmChannel* channel = nullptr;
    Clock::time_point due;
    bool is_receiving = false;
    bool has_tried = false;
  };

  static std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }
  const EndpointAddress& address_of(int peer) const { return addresses_[index_of(peer)]; }
  std::string name_of(int peer) const;

  void publish(const TransportRequest& request, const std::string& why_not);
  void check_addresses(const TransportRequest& request) const;
  void hear_all();
  void accept_all();
  void require_room() const;
  posix::PendingConnections::Handlers house();
  bool is_for_this_rank(const Hello& hello) const;
  void welcome(int peer, posix::Descriptor socket, posix::Descriptor region);
  bool answer(ShmChannel& channel, const posix::Descriptor& socket);
  void take(ShmChannel& channel, posix::Descriptor socket);
  void make_calls(bool is_hurried);
  void make(Call& call);
  std::optional<posix::Descriptor> reach(ShmChannel& channel);
  void find_gone(ShmChannel& channel);
  void hear_answer(const Call& call);
  bool is_waited_for() const;
  bool say_hello(ShmChannel& channel, const posix::Descriptor& socket,
                 const EndpointAddress& called) const;
  [[noreturn]] void throw_exhausted(int peer, const std::string& peer_name,
                                    const std::string& why) const;

  const int rank_;
  const int size_;
  const Layout layout_;
  posix::Epoll& watch_;
  std::optional<posix::UnixListener> listener_;
  EndpointAddress own_;
  std::vector<EndpointAddress> addresses_;
  std::vector<ShmChannel*> channels_;  // by peer
  posix::PendingConnections pending_connections_;
  std::vector<Call> calls_;  // of channels that wait for their peer's region
  bool has_news_ = false;    // since the last hurry()
  bool lacks_room_ = false;  // no descriptor for a region that a peer has sent
};

}  // namespace kolo::inline v0::shm
