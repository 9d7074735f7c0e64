// Liveness of the ranks on this host, without network messages: UCX's shared memory does not report
// the death of a peer.
//
// Every rank listens on a unix socket. A rank that uses a channel connects to the peer's socket and
// sends its identity. The connection stays in the listener's backlog and ends when the listener's
// process ends. A rank that ends in order accepts the waiting connections and sends each known rank
// a farewell: how many segments it has sent. Other clients get nothing. So an end without a
// farewell is a death. Cost: one descriptor per watched peer, and one for being watched.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transports/posix/epoll.h"
#include "transports/posix/unix_socket.h"

namespace kolo::inline v0::ucx {

// Message in native byte order, since it stays within one host.
struct Farewell {
  std::uint32_t token = 0;  // of the sender
  std::uint32_t rank = 0;
  std::uint32_t sent = 0;   // segments sent to the receiver of this message
  std::uint32_t taken = 0;  // segments received from it
};

class HostLiveness {
 public:
  // For a job of `size` ranks. An end wakes `epoll`, with the peer's rank as the event's data.
  HostLiveness(int size, posix::Epoll& epoll);

  // Name of the socket where ranks of this host watch this rank.
  std::string name() const { return listener_->name(); }

  // Watches `peer`, which listens at `name`; `own` identifies this rank. Returns false if the
  // peer's backlog is full: try again later. Error kPeerLost if the peer has ended.
  bool watch(int peer, const std::string& name, const Farewell& own);

  // News of a peer.
  struct News {
    std::optional<Farewell> farewell;
    bool is_end = false;  // the peer has ended and is not watched any more
  };
  News hear(int peer);

  // Asks the kernel now. If true, data read from the peer's memory before this call were read while
  // the peer still held that memory. True for a peer that was never watched.
  bool is_alive(int peer) const noexcept;

  // Ends this rank's liveness in order: sends each watcher the farewell that `farewell` returns for
  // it, or nothing. Afterwards no rank watches this rank.
  void part(
      const std::function<std::optional<Farewell>(const Farewell& watcher)>& farewell) noexcept;

 private:
  struct Watched {
    posix::Descriptor socket;
    bool is_gone = false;
  };
  Watched& watched(int peer) { return watched_[static_cast<std::size_t>(peer)]; }

  posix::Epoll& epoll_;
  std::optional<posix::UnixListener> listener_;
  std::vector<Watched> watched_;
};

}  // namespace kolo::inline v0::ucx
