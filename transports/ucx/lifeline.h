// Who of this host is still there, without a word over the network: UCX's shared memory says
// nothing when a peer dies.
//
// Every rank listens on a unix socket and never accepts. Who uses a channel connects there: the
// connection waits in the listener's queue, and ends in the moment in which the listener's process
// does, or its transport is closed. That costs who watches one descriptor a peer, and who is
// watched one in all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "transports/posix/epoll.h"
#include "transports/posix/unix_socket.h"

namespace kolo::ucx {

class Lifelines {
 public:
  // Of a job of `size` ranks. Ends are news of `epoll`, with the peer's rank as their token.
  Lifelines(int size, posix::Epoll& epoll);

  // Where the others of this host watch this rank.
  std::string name() const { return listener_->name(); }

  // Watches `peer`, who listens at `name`. False where its queue is full: then try again. Error
  // kPeerLost where it is gone.
  bool watch(int peer, const std::string& name);

  // After its end was news; or nobody cares any more.
  void forget(int peer) noexcept;

  // Asks the kernel now, so that what this rank has read of the peer's memory before was read while
  // the peer still held it. True for who is not watched.
  bool is_alive(int peer) const noexcept;

  // Tells all who watch this rank that it is gone.
  void let_go() noexcept { listener_.reset(); }

 private:
  posix::Epoll& epoll_;
  std::optional<posix::UnixListener> listener_;
  std::vector<posix::Descriptor> watched_;
};

}  // namespace kolo::ucx
