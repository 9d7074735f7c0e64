// Who of this host is still there, without a word over the network: UCX's shared memory says
// nothing when a peer dies.
//
// Every rank listens on a unix socket. Who uses a channel connects there and says who it is: the
// connection waits in the listener's queue, and ends in the moment in which the listener's process
// does. A rank that ends in good order accepts what waits, and says farewell there: how many
// segments it has sent; to whoever else waits there, nothing. So an end without a farewell is a
// death. That costs who watches one descriptor a peer, and who is watched one in all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transports/posix/epoll.h"
#include "transports/posix/unix_socket.h"

namespace kolo::ucx {

// As it travels, within one host.
struct Farewell {
  std::uint32_t token = 0;  // of who says it
  std::uint32_t rank = 0;
  std::uint32_t sent = 0;   // segments, to who is told
  std::uint32_t taken = 0;  // and from there
};

class HostLiveness {
 public:
  // Of a job of `size` ranks. Ends are news of `epoll`, with the peer's rank as their token.
  HostLiveness(int size, posix::Epoll& epoll);

  // Where the others of this host watch this rank.
  std::string name() const { return listener_->name(); }

  // Watches `peer`, who listens at `name`; `own` says who watches. False where its queue is full:
  // then try again. Error kPeerLost where it is gone.
  bool watch(int peer, const std::string& name, const Farewell& own);

  // What the news of `peer` are.
  struct News {
    std::optional<Farewell> farewell;
    bool is_end = false;  // it is watched no more
  };
  News hear(int peer);

  // Asks the kernel now, so that what this rank has read of the peer's memory before was read while
  // the peer still held it. True for who was never watched.
  bool is_alive(int peer) const noexcept;

  // Tells who watches that this rank is done: `farewell` says what to who it is, or nothing. Then
  // nobody watches this rank any more.
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

}  // namespace kolo::ucx
