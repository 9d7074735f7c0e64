// Connections to a unix socket that have not completed the handshake.
//
// A rank's first message, the hello, carries a descriptor. Other programs may connect as well; such
// unknown clients must cost little. A connection whose first message is not a hello is closed. At
// most kMostUnknownClients silent connections may wait beside the expected ranks, each for a
// limited time; the oldest is dropped first. If the process runs out of descriptors, silent
// connections are dropped to make room for new ones and for the descriptors that hellos carry. A
// connection that has sent its hello is handed over, or waits until there is a free descriptor.
//
// Each connection is read once more before it is dropped. A hello that arrives after that read is
// lost. So a rank waits for an answer, and reconnects if its connection is closed first.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <string>

#include "transports/posix/descriptor.h"
#include "transports/posix/unix_socket.h"

namespace kolo::inline v0::posix {

class PendingConnections {
 public:
  static constexpr std::size_t kMostUnknownClients = 64;
  static constexpr std::size_t kMostAccepted = 64;  // in one call of accept_from()
  static constexpr std::size_t kLongestHello = 64;

  // Callbacks for new connections. None of them may call PendingConnections.
  struct Handlers {
    std::size_t hello_bytes = 0;
    int descriptors = 1;  // free ones needed for one peer, with the one it passes
    std::function<bool(std::span<const std::byte> said)> is_hello;
    std::function<void(std::span<const std::byte> hello, Descriptor socket, Descriptor passed)>
        let_in;
    std::function<void(int socket)> watch;  // called for each connection that waits; may be empty
  };

  // `expected`: how many ranks may wait at once. A connection that is silent for longer than
  // `patience` is dropped.
  PendingConnections(Handlers house, std::size_t expected,
                     std::chrono::steady_clock::duration patience = std::chrono::seconds(5));

  // Reads from the waiting connections, then accepts up to kMostAccepted new ones.
  void look(UnixListener& listener);

  // Only accepts new connections.
  void accept_from(UnixListener& listener);

  // Closes the oldest silent connection. False if there is none.
  bool drop_oldest_silent();

  bool is_empty() const { return waiting_.empty(); }

  // Whether connections are left at the listener for the next look().
  bool has_left_some() const { return has_left_some_; }

  // Why the last look() could not take a connection: no descriptor is free. Empty if none was kept
  // out.
  const std::string& why_kept_out() const { return why_kept_out_; }

  void clear() noexcept { waiting_.clear(); }

 private:
  struct PendingConnection {
    Descriptor socket;  // closed: this connection is finished
    std::chrono::steady_clock::time_point patience_ends;
    bool has_said_hello = false;
  };

  Descriptor accept(UnixListener& listener);
  void keep(PendingConnection caller);
  void hear_all();
  void hear(PendingConnection& caller);
  void make_room();
  void forget_done();

  const Handlers handlers_;
  const std::size_t most_;
  const std::chrono::steady_clock::duration patience_;
  std::deque<PendingConnection> waiting_;  // oldest first
  bool has_left_some_ = false;
  bool lacks_room_ = false;  // for the descriptor that a hello carries
  std::string why_kept_out_;
};

}  // namespace kolo::inline v0::posix
