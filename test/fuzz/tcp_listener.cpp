// Fuzzer of the tcp listener: data from unknown processes and from a peer before the handshake,
// over real connections, several at once, cut anywhere.
#include "test/fuzz/tcp_listener.h"

#include <sys/socket.h>
#include <cstdint>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "transports/tcp/hello.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

// The owner of accepted connections.
class Inside final : public tcp::ConnectionOwner {
 public:
  bool take(posix::Descriptor& socket, const tcp::Hello* theirs, std::uint32_t lane) override {
    require(theirs != nullptr, "the listener made no connection of its own");
    require(theirs->from == kPeer && theirs->to == kRank, "only the peer is accepted");
    require(theirs->lane == lane, "by the lane that it has said");
    last_ = std::move(socket);
    ++count_;
    return true;
  }
  void cannot_connect(const std::string&) noexcept override {}

  int count() const { return count_; }

 private:
  posix::Descriptor last_;
  int count_ = 0;
};

class Outside {
 public:
  explicit Outside(std::uint16_t port) {
    std::string why;
    socket_ = posix::start_connecting(posix::resolve("127.0.0.1", port, why).at(0));
    // No port stays in TIME_WAIT: there are not enough.
    const linger reset{1, 0};
    require(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0,
            "there are sockets");
  }
  void say(std::string_view bytes) { posix::send_some(socket_, bytes.data(), bytes.size()); }

 private:
  posix::Descriptor socket_;
};

// A right or nearly right hello.
tcp::Hello hello_of(Input& input, const tcp::Token& token) {
  tcp::Hello hello{token, kPeer, kRank, false, 0};
  const unsigned flaw = input.below(6);
  if (flaw == 1) hello.token[input.below(tcp::kTokenBytes)] ^= std::byte{1};
  if (flaw == 2) hello.from = input.number<std::int32_t>();
  if (flaw == 3) hello.to = input.number<std::int32_t>();
  if (flaw == 4) hello.lane = input.number<std::uint32_t>();
  hello.follows_another = flaw == 5;
  return hello;
}

class Street {
 public:
  Street() { listener_.let(kPeer, inside_); }

  void act(Input& input) {
    std::string speech;
    bool is_peer = false;
    if (input.below(2) == 0) {
      speech = input.short_text();
    } else {
      const tcp::Hello hello = hello_of(input, listener_.token());
      speech = as_text(tcp::encode(hello));
      is_peer = hello.token == listener_.token() && hello.from == kPeer && hello.to == kRank;
    }
    const int before = inside_.count();
    Outside who(port_);
    const std::size_t cut = input.number<std::uint8_t>();
    who.say(std::string_view(speech).substr(0, cut));
    listener_.look();
    if (cut < speech.size()) who.say(std::string_view(speech).substr(cut));
    listener_.look();
    const bool is_in = inside_.count() == before + 1;
    const bool has_token =
        speech.find(std::string(as_text(listener_.token()))) != std::string::npos;
    require(is_peer ? is_in : (!is_in || has_token), "only a client with the token is accepted");
    // Some connections stay open and send nothing more.
    if (input.below(4) == 0 && waiting_.size() < 8) waiting_.push_back(std::move(who));
  }

 private:
  posix::Epoll watch_;
  Inside inside_;
  tcp::Listener listener_ = make_listener(watch_);
  std::uint16_t port_ = listener_.address_of(kRank).port;
  std::vector<Outside> waiting_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Street street;
  for (int visits = 0; visits < 8 && !input.is_empty(); ++visits) street.act(input);
  return 0;
}
