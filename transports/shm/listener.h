// How two ranks of one host come to share memory: when one of them first uses their channel, and
// not before.
//
// Every rank listens on a unix socket whose name the kernel chose, and publishes it in the store
// with a *ticket*, a random number that only readers of the store can know. Who sends first
// connects, and in one message says hello (magic, version, the other's ticket, its own rank) and
// hands over its region (layout.h), in which it goes on at once: it may fill the region, and even
// end, before the other has looked up. That one answers on the same socket with its own hello and
// its own region. Where both have connected at once, each has the other's hello already, and both
// sockets stay: everybody speaks on the one that it opened and listens on both.
//
// Who waits to receive leaves the first step to the sender for kSenderComesWithin, or until it
// goes to sleep. A rank listens as long as its transport lives, so who finds nobody there knows
// that it has ended.
//
// Whoever else connects, or says something else, is dropped; who says nothing in time, too
// (posix/callers.h). The sockets stay: they wake sleepers, and their end tells of a death.
//
// Nothing here blocks but the constructor, which waits for all ranks to say where they listen.
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

namespace kolo::shm {

inline constexpr std::chrono::milliseconds kSenderComesWithin{1};

class Listener final : public Connector {
 public:
  // Collective over the request's ranks. Events of the sockets of those who have not said hello
  // carry the request's size as their token in `watch`, those of channels the peer's rank. Errors:
  // kUnavailable where ranks are on different hosts or one of them has no memfd (all ranks are
  // told, and which); kDeadline naming who has not come; kProtocol where ranks differ in build or
  // segment size; kAborted when a failure is posted meanwhile.
  Listener(const TransportRequest& request, const Layout& layout, bool has_remote_barriers,
           posix::Epoll& watch);

  // What a channel to `peer` is made of.
  Pair pair_with(int peer) const;
  void let(int peer, ShmChannel& channel) { channels_[index_of(peer)] = &channel; }

  void connect(ShmChannel& channel, bool is_sending) override;

  // Lets in who has come, and calls whom it is time to call. Error kUnavailable when descriptors
  // run out, as far as a channel of this rank waits for its peer.
  void look();

  // Whether look() has something to do without an event.
  bool is_busy() const {
    return !pending_connections_.is_empty() || !calls_.empty() ||
           pending_connections_.has_left_some();
  }

  // Before this rank sleeps: calls all who are waited for. True where something has come since the
  // last time, or could not be done, so that this rank must not sleep now.
  bool hurry();

  // Says the hellos that nobody has taken yet, of channels that hold data.
  void finish(Deadline deadline) noexcept;

  // Nobody comes any more.
  void close() noexcept;

 private:
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
  void check_addresses() const;
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
  std::string no_descriptor(const std::string& peer, const std::string& why) const;

  const int rank_;
  const int size_;
  const Layout layout_;
  posix::Epoll& watch_;
  std::optional<posix::UnixListener> listener_;
  EndpointAddress own_;
  std::vector<EndpointAddress> addresses_;
  std::vector<ShmChannel*> channels_;  // by peer
  posix::PendingConnections pending_connections_;
  std::vector<Call> calls_;  // of channels that want their peer and have not got it
  bool has_news_ = false;    // since hurry() was asked last
};

}  // namespace kolo::shm
