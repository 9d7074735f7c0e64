// Who of the ranks has ended, for transports whose network does not say: a socket between two ranks
// from the first use of their channel on. No data travel on it; its end is the peer's. A rank that
// closes can leave a last word there, a number: that comes although it is gone.
//
// Within a host it is a unix socket, between hosts a TCP connection (with keepalive, so that a
// machine that vanished is noticed within some 30 s). A rank listens as long as its lifeline lives,
// so who finds nobody there, or somebody else, knows that it has ended. Who connects says hello
// (the other's ticket, a random number that only readers of the store know, and its own rank);
// whoever says something else is dropped, who says nothing in time, too, and of a crowd the oldest.
// Who is let in is welcomed (with its own ticket): only then is the end of the line the peer's end.
// Who is hung up on before, as a stranger is, calls again.
//
// Nothing here blocks. One thread at a time.
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

namespace kolo {

// Where a rank's lifeline is to be reached: one line, to be published in the store.
struct LivenessAddress {
  std::string host_identity;  // posix::host_identity(), without blanks
  std::string unix_name;      // "-": none
  std::string tcp_host;
  std::uint16_t tcp_port = 0;  // 0: none
  std::uint64_t ticket = 0;
};

std::string to_text(const LivenessAddress& address);

// Nothing where the text is no such line.
std::optional<LivenessAddress> liveness_address_from_text(const std::string& text);

class PeerLiveness {
 public:
  // Listens. `tcp_host` is what other hosts call this one; empty: its name. Who has not said hello
  // after `patience` is dropped.
  PeerLiveness(int rank, int size, std::string tcp_host = "",
               Clock::duration patience = std::chrono::seconds(5));

  const LivenessAddress& address() const { return own_; }

  // By rank; before anything else is asked. Those of this rank's own host are known by it.
  void know(std::vector<LivenessAddress> addresses) { addresses_ = std::move(addresses); }

  // From now on the end of `peer` is noticed. As often as one likes.
  void join(int peer) {
    if (!peers_[index_of(peer)].is_joined) join_first(peer);
  }

  // Notices what has happened; one system call where nothing has. Error kUnavailable where
  // descriptors run out.
  void look();

  // The same at most every millisecond, and cheap, for who asks all the time.
  void look_now_and_then() {
    if (++calls_ % kCallsPerClock == 0) look_if_due();
  }

  // As far as look() has noticed. Once gone, it stays so.
  bool is_gone(int peer) const { return peers_[index_of(peer)].is_gone; }

  // How many are gone: who keeps the number sees when there is another.
  int gone() const { return gone_; }

  // What `peer` has left, as far as look() has noticed.
  std::optional<std::uint64_t> last_word(int peer) const {
    return peers_[index_of(peer)].last_word;
  }

  // Leaves `word_for(peer)` for every rank that is joined with this one. Before close().
  void leave_words(const std::function<std::uint64_t(int peer)>& word_for) noexcept;

  // Readable when look() has something to do. What has been looked at keeps nobody awake.
  int descriptor() const { return watch_.descriptor(); }

  // Nobody is watched any more, and this rank is gone for all others.
  void close() noexcept;

 private:
  static constexpr unsigned kCallsPerClock = 64;

  struct Line {
    posix::Descriptor socket;
    bool awaits_welcome = false;
    std::uint64_t word = 0;  // the welcome, or the last one
    std::size_t bytes = 0;   // of the word that have come
  };
  enum class Heard { kNothing, kEnd, kHungUp, kSomebodyElse };
  struct Peer {
    bool is_joined = false;
    bool is_gone = false;
    bool is_connecting = false;
    bool is_refused = false;
    Line called;  // this rank opened it
    Line came;
    int hang_ups = 0;  // before a welcome
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
    std::size_t bytes = 0;  // of the hello that have come
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
  void look_again_at_doors();
  bool hear(UnknownClient& stranger);
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
  bool has_unanswered_ = false;  // calls that found a full queue, or no welcome: to be made again
  bool has_left_some_ = false;   // at the doors, for the next look
  bool is_exhausted_ = false;    // no descriptor was left for who came
  int gone_ = 0;
  unsigned calls_ = 0;
  Clock::time_point looked_{};
};

}  // namespace kolo
