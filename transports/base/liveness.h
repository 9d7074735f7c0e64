// Liveness of the peers, for transports whose network does not report their end.
//
// Two ranks open a socket at the first use of their channel. It carries no data; when it closes,
// the peer has ended. A rank that closes can leave a last word there, a number, which arrives after
// its end.
//
// Within a host it is a unix socket, between hosts a TCP connection. TCP keepalive detects a lost
// machine within about 30 s. A rank listens as long as its PeerLiveness lives. So if nothing
// listens at its address, or another process does, the rank has ended.
//
// Handshake: the connecting rank sends a hello, with the peer's ticket (a random number that only
// readers of the store know) and its own rank. The listener drops a client with another hello, a
// client without one in time, and the oldest of too many clients. It answers with a welcome, the
// connecting rank's own ticket. Only after the welcome does the end of the connection mean the
// peer's end. A rank that is disconnected before, as an unknown client would be, connects again.
//
// Nothing here blocks. Threading: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transports/posix/descriptor.h"
#include "transports/posix/epoll.h"
#include "transports/posix/unix_socket.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// Address of a rank's liveness listener; one line of text in the store.
struct LivenessAddress {
  std::string host_identity;  // posix::host_identity(), without blanks
  std::string unix_name;      // "-": none
  std::string tcp_host;
  std::uint16_t tcp_port = 0;  // 0: none
  std::uint64_t ticket = 0;
};

std::string to_text(const LivenessAddress& address);

// Empty if the text cannot be parsed.
std::optional<LivenessAddress> liveness_address_from_text(const std::string& text);

class PeerLiveness {
 public:
  // Starts to listen. `tcp_host`: this host's name for other hosts; empty: its own name. A client
  // without a hello after `patience` is dropped.
  PeerLiveness(int rank, int size, std::string tcp_host = "",
               Clock::duration patience = std::chrono::seconds(5));

  const LivenessAddress& address() const { return own_; }

  // Sets the addresses of all ranks, by rank; before other calls. Equal host_identity: same host.
  void know(std::vector<LivenessAddress> addresses) { addresses_ = std::move(addresses); }

  // Starts to watch `peer`. Repeated calls are cheap.
  void join(int peer) {
    if (!peers_[index_of(peer)].is_joined) join_first(peer);
  }

  // Handles all events; one system call if there are none. Error kUnavailable if no descriptor is
  // free.
  void look();

  // The same at most once per millisecond; cheap, for busy callers.
  void look_now_and_then() {
    if (++calls_ % kCallsPerClock == 0) look_if_due();
  }

  // Whether `peer` has ended, as of the last look(). It never becomes false again.
  bool is_gone(int peer) const { return peers_[index_of(peer)].is_gone; }

  // Number of peers that have ended. Compare it with an earlier value to detect a new one.
  int gone() const { return gone_; }

  // The last word of `peer`, if it has arrived by the last look().
  std::optional<std::uint64_t> last_word(int peer) const {
    return peers_[index_of(peer)].last_word;
  }

  // Sends `word_for(peer)` as the last word to every connected rank. Before close().
  void leave_words(const std::function<std::uint64_t(int peer)>& word_for) noexcept;

  // Readable when look() has something to do. Events that look() has handled do not keep it
  // readable.
  int descriptor() const { return watch_.descriptor(); }

  // Stops watching. All peers see this rank's end.
  void close() noexcept;

 private:
  static constexpr unsigned kCallsPerClock = 64;

  struct Line {
    posix::Descriptor socket;
    bool awaits_welcome = false;
    std::uint64_t word = 0;  // the welcome, or the last word
    std::size_t bytes = 0;   // of `word` received so far
  };
  enum class Heard { kNothing, kEnd, kHungUp, kSomebodyElse };
  struct Peer {
    bool is_joined = false;
    bool is_gone = false;
    bool is_connecting = false;
    bool is_refused = false;
    Line called;       // opened by this rank
    Line came;         // opened by the peer
    int hang_ups = 0;  // disconnections before a welcome
    std::optional<std::uint64_t> last_word;
  };
  struct Hello {
    std::uint64_t ticket = 0;
    std::uint64_t rank = 0;
  };
  struct UnknownClient {
    posix::Descriptor socket;
    Deadline patience;
    Hello hello;
    std::size_t bytes = 0;  // of `hello` received so far
  };

  static std::size_t index_of(int rank) { return static_cast<std::size_t>(rank); }

  void join_first(int peer);
  void look_if_due();
  void call(int peer);
  bool call_unix(int peer);
  bool call_tcp(int peer);
  void say_hello(int peer);
  void finish_connecting(int peer);
  bool lose_refused(int peer);
  void call_again();
  void hear_all();
  void accept_some();
  posix::Descriptor accept_one();
  void drop_oldest();
  void look_again_at_listeners();
  bool hear(UnknownClient& unknown_client);
  void hear_peer(int peer);
  Heard hear_line(Line& line) const;
  void hung_up(int peer);
  void lose(int peer) noexcept;

  const int rank_;
  const Clock::duration patience_;
  posix::Epoll watch_;
  LivenessAddress own_;
  std::optional<posix::UnixListener> unix_;
  posix::Descriptor tcp_;
  std::vector<LivenessAddress> addresses_;
  std::vector<Peer> peers_;
  std::deque<UnknownClient> unknown_clients_;
  bool has_unanswered_ = false;  // connections to retry: the peer's queue was full, or no welcome
  bool has_left_some_ = false;   // clients in the listeners' queues, for the next look()
  bool is_exhausted_ = false;    // no descriptor was free for a new client
  int gone_ = 0;
  unsigned calls_ = 0;
  Clock::time_point looked_{};
};

}  // namespace kolo::inline v0
