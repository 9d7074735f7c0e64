// Fuzzer of liveness connections: at a rank's listeners, over TCP and unix sockets, from unknown
// processes and from processes that know the ticket; and where the rank connects, from the process
// that listens there. Messages are sent in pieces and may be truncated.
//
// No peer counts as gone, and no word as its last one, unless the peer has said so itself. If it
// has, the rank must believe it.
#include "transports/base/liveness.h"

#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/fuzz/input.h"
#include "transports/posix/socket.h"
#include "transports/posix/unix_socket.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

constexpr int kSize = 3;
constexpr int kFar = 1;   // reached over TCP
constexpr int kNear = 2;  // reached over a unix socket
constexpr std::size_t kWordBytes = 8;
constexpr std::size_t kHelloBytes = 16;
constexpr std::size_t kMostClients = 8;
constexpr auto kLong = std::chrono::seconds(20);

std::string word_of(std::uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// One end of a connection, and the data sent so far to the liveness object at the other end. That
// one reads a first piece (hello or welcome), then a word, then nothing of meaning. From a unix
// socket it takes only as much of a message as it expects.
class Voice {
 public:
  Voice(posix::Descriptor socket, bool is_near, std::size_t first_bytes)
      : socket_(std::move(socket)), is_near_(is_near), first_bytes_(first_bytes) {
    if (is_near) return;
    posix::set_low_latency(socket_);  // so data leave at once, even before a close
    const linger reset{1, 0};         // no port stays in TIME_WAIT: there are not enough
    require(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0,
            "there are sockets");
  }

  void say(std::string_view text) {
    if (text.empty()) return;  // over a unix socket an empty message would mean the end
    posix::send_some(socket_, text.data(), text.size());
    const std::size_t all = first_bytes_ + kWordBytes;
    const std::size_t end = is_near_ && said_.size() < first_bytes_ ? first_bytes_ : all;
    said_ += text.substr(0, end - said_.size());
  }

  const std::string& heard() {
    std::array<char, 64> bytes{};
    heard_.append(bytes.data(), posix::receive_some(socket_, bytes.data(), bytes.size()).bytes);
    return heard_;
  }

  // Empty until it has been sent in full.
  std::string first() const {
    return said_.size() < first_bytes_ ? "" : said_.substr(0, first_bytes_);
  }
  std::string last() const {
    return said_.size() < first_bytes_ + kWordBytes ? "" : said_.substr(first_bytes_);
  }

 private:
  posix::Descriptor socket_;
  bool is_near_;
  std::size_t first_bytes_;
  std::string said_;
  std::string heard_;
};

class Street {
 public:
  Street() {
    own_ = liveness_.address();
    LivenessAddress far = own_;
    far.host_identity = "elsewhere";
    far.tcp_host = "127.0.0.1";
    far.tcp_port = posix::local_address(far_place_).port();
    far.ticket = kFar;
    LivenessAddress near = own_;
    near.unix_name = near_place_.name();
    near.ticket = kNear;
    liveness_.know({own_, far, near});
  }

  void act(Input& input) {
    const unsigned what = input.below(6);
    if (what == 0) come(input);
    if (what == 1) client_speaks(input);
    if (what == 2) client_leaves(input);
    if (what == 3) liveness_.join(peer_of(input));
    if (what == 4) place_speaks(input);
    if (what == 5) place_hangs_up(input);
    look();
  }

  // A peer that connects now must be heard, whatever else is connected.
  void end() {
    for (std::size_t i = clients_.size(); i-- > 0;) {
      if (name_of(clients_[i]) != 0) leave(i);
    }
    for (const int peer : {kFar, kNear}) {
      if (liveness_.is_gone(peer)) continue;
      clients_.push_back(new_client(peer == kNear));
      speak(clients_.back(), hello(own_.ticket, peer) + word_of(7), kHelloBytes);
      until([&] { return liveness_.last_word(peer) == 7; }, "a peer's last word is heard");
      leave(clients_.size() - 1);
    }
    require(liveness_.gone() == kSize - 1, "all have ended, and are gone");
  }

 private:
  static int peer_of(Input& input) { return input.below(2) == 0 ? kFar : kNear; }
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  static std::string hello(std::uint64_t ticket, int rank) {
    return word_of(ticket) + word_of(static_cast<std::uint64_t>(rank));
  }

  template <typename Condition>
  void until(const Condition& is_so, const char* what) {
    const auto deadline = Clock::now() + kLong;
    while (!is_so() && Clock::now() < deadline) look();
    require(is_so(), what);
  }

  // The rank named in the hello; 0: none.
  int name_of(const Voice& voice) const {
    for (const int peer : {kFar, kNear}) {
      if (voice.first() == hello(own_.ticket, peer)) return peer;
    }
    return 0;
  }

  void look() {
    liveness_.look();
    while (auto called = near_place_.accept())
      lines_[kNear].emplace_back(std::move(*called), true, kWordBytes);
    for (auto called = posix::accept_from(far_place_); called.is_open();
         called = posix::accept_from(far_place_))
      lines_[kFar].emplace_back(std::move(called), false, kWordBytes);
    for (Voice& voice : clients_) {
      const int name = name_of(voice);
      const std::string welcome = name == 0 ? "" : word_of(index(name));
      require(welcome.starts_with(voice.heard()), "only an accepted peer is welcomed");
    }
    for (const int peer : {kFar, kNear}) look_at(peer);
  }

  void look_at(int peer) {
    for (Voice& line : lines_[index(peer)])
      require(hello(index(peer), 0).starts_with(line.heard()), "a rank says hello, and no more");
    require(!liveness_.is_gone(peer) || may_be_gone_[index(peer)],
            "a peer that has not ended is not gone");
    const auto last = liveness_.last_word(peer);
    require(!last || words_[index(peer)].contains(word_of(*last)), "a last word has been said");
  }

  std::string speech(Input& input) {
    const int peer = peer_of(input);
    switch (input.below(6)) {
      case 0:
        return input.short_text();
      case 1:
        return hello(own_.ticket, peer);
      case 2:
        return hello(own_.ticket, peer) + word_of(input.number<std::uint64_t>());
      case 3:
        return hello(own_.ticket ^ (std::uint64_t{1} << input.below(64)), peer);
      case 4:
        return word_of(own_.ticket) + word_of(input.number<std::uint64_t>());
      default:
        return word_of(own_.ticket);
    }
  }

  // Sends two pieces; the second may be left out.
  void speak(Input& input, Voice& voice) {
    const std::string text = speech(input);
    const std::size_t cut = input.number<std::uint8_t>();
    speak(voice, input.below(4) == 0 ? text.substr(0, cut) : text, cut);
  }
  void speak(Voice& voice, std::string_view text, std::size_t cut) {
    cut = std::min(cut, text.size());
    for (const std::string_view piece : {text.substr(0, cut), text.substr(cut)}) {
      voice.say(piece);
      note(voice);
      look();
    }
  }

  // Records what the voice has sent in a peer's name, with a hello or from the peer's endpoint.
  void note(const Voice& voice) {
    for (const int peer : {kFar, kNear}) {
      bool is_peer = name_of(voice) == peer;
      for (const Voice& line : lines_[index(peer)]) {
        if (&line != &voice) continue;
        is_peer = is_welcome(line);
        may_be_gone_[index(peer)] |= is_somebody_else(line);
      }
      if (is_peer && !voice.last().empty()) words_[index(peer)].insert(voice.last());
    }
  }
  bool is_welcome(const Voice& line) const { return line.first() == word_of(own_.ticket); }
  bool is_somebody_else(const Voice& line) const {
    return !line.first().empty() && !is_welcome(line);
  }

  // --- connections to the rank's listeners ---

  Voice new_client(bool is_near) {
    if (is_near) return {posix::connect_unix(own_.unix_name).value(), true, kHelloBytes};
    std::string why;
    return {posix::start_connecting(posix::resolve("127.0.0.1", own_.tcp_port, why).at(0)), false,
            kHelloBytes};
  }

  void come(Input& input) {
    if (clients_.size() == kMostClients) return;
    clients_.push_back(new_client(input.below(2) == 0));
    speak_to_listener(input, clients_.back());
  }

  void client_speaks(Input& input) {
    if (clients_.empty()) return;
    speak_to_listener(input, clients_[input.below(static_cast<unsigned>(clients_.size()))]);
  }

  // The first connection with a peer's hello is accepted.
  void speak_to_listener(Input& input, Voice& voice) {
    speak(input, voice);
    const int name = name_of(voice);
    if (name == 0 || has_come_[index(name)]) return;
    until([&] { return liveness_.is_gone(name) || is_let_in(voice); }, "a peer is let in");
    has_come_[index(name)] = true;
  }
  static bool is_let_in(Voice& voice) { return voice.heard().size() == kWordBytes; }

  void client_leaves(Input& input) {
    if (!clients_.empty()) leave(input.below(static_cast<unsigned>(clients_.size())));
  }

  void leave(std::size_t number) {
    Voice& voice = clients_[number];
    const int name = name_of(voice);
    const bool was_peer = name != 0 && is_let_in(voice) && !liveness_.is_gone(name);
    const std::string last = voice.last();
    if (was_peer) may_be_gone_[index(name)] = true;
    clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(number));
    if (!was_peer) return;
    until([&] { return liveness_.is_gone(name); },
          "the end of an accepted connection is the peer's end");
    if (last.empty()) return;
    const auto word = liveness_.last_word(name);
    require(word && word_of(*word) == last,
            "the last word of an accepted connection is the peer's");
  }

  // --- connections made by the rank ---

  void place_speaks(Input& input) {
    const int peer = peer_of(input);
    if (lines_[index(peer)].empty()) return;
    Voice& line = lines_[index(peer)].back();
    speak(input, line);
    if (is_somebody_else(line))
      until([&] { return liveness_.is_gone(peer); },
            "another process in the place of a peer is the peer's end");
  }

  void place_hangs_up(Input& input) {
    const int peer = peer_of(input);
    if (lines_[index(peer)].empty()) return;
    const bool is_end = is_welcome(lines_[index(peer)].back());
    may_be_gone_[index(peer)] |= is_end;
    lines_[index(peer)].pop_back();
    if (is_end) until([&] { return liveness_.is_gone(peer); }, "the end of a line is the peer's");
  }

  posix::Descriptor far_place_ = posix::listen_on("127.0.0.1", 0);
  posix::UnixListener near_place_{64};
  PeerLiveness liveness_{0, kSize, "127.0.0.1", std::chrono::hours(1)};
  LivenessAddress own_;
  std::vector<Voice> clients_;
  std::array<std::deque<Voice>, kSize> lines_;  // opened by the rank
  std::array<bool, kSize> has_come_{};
  std::array<bool, kSize> may_be_gone_{};
  std::array<std::set<std::string>, kSize> words_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Street street;
  for (int acts = 0; acts < 16 && !input.is_empty(); ++acts) street.act(input);
  street.end();
  return 0;
}
