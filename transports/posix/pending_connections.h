// Those who have connected to a unix socket and have not been let in yet: ranks, whose first
// message, the hello, brings a descriptor along; and strangers.
//
// Strangers cost little. Who says anything but a hello is hung up on; of the silent
// kMostUnknownClients may wait beside as many ranks as are expected, each for a while, and the
// oldest goes first. Where no descriptor is left a silent one's is used, for who comes next or for
// what a hello brings along. Who has said hello is let in, or waits until there is a descriptor.
//
// Each is heard once more before it is dropped; a hello that comes just then is lost all the same.
// So a rank waits for an answer, and calls again where it is hung up on before.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <string>

#include "transports/posix/descriptor.h"
#include "transports/posix/unix_socket.h"

namespace kolo::posix {

class PendingConnections {
 public:
  static constexpr std::size_t kMostUnknownClients = 64;
  static constexpr std::size_t kMostAccepted = 64;  // in one look
  static constexpr std::size_t kLongestHello = 64;

  // What is done with those who come. None of it calls PendingConnections.
  struct Handlers {
    std::size_t hello_bytes = 0;
    int descriptors = 1;  // that it takes to let one in, with the one that comes along
    std::function<bool(std::span<const std::byte> said)> is_hello;
    std::function<void(std::span<const std::byte> hello, Descriptor socket, Descriptor passed)>
        let_in;
    std::function<void(int socket)> watch;  // one that waits; may be empty
  };

  // `expected`: how many ranks may wait at once. Who is silent for longer than `patience` is
  // dropped.
  PendingConnections(Handlers house, std::size_t expected,
                     std::chrono::steady_clock::duration patience = std::chrono::seconds(5));

  // Hears those who wait, then those who stand at the listener, kMostAccepted of them at the most.
  void look(UnixListener& listener);

  // The latter alone.
  void accept_from(UnixListener& listener);

  // Hangs up on the oldest that is silent. False where there is none.
  bool drop_oldest_silent();

  bool is_empty() const { return waiting_.empty(); }

  // At the listener, for the next look.
  bool has_left_some() const { return has_left_some_; }

  // What keeps somebody out as of the last look: no descriptor is left for him. Empty: nothing.
  const std::string& why_kept_out() const { return why_kept_out_; }

  void clear() noexcept { waiting_.clear(); }

 private:
  struct PendingConnection {
    Descriptor socket;  // closed: he has been dealt with
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
  bool lacks_room_ = false;  // for what a hello brings along
  std::string why_kept_out_;
};

}  // namespace kolo::posix
