#include "transports/tcp/mesh.h"

#include <fmt/format.h>
#include <poll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <sstream>
#include <utility>

#include "transports/check.h"
#include "transports/error.h"
#include "transports/exchange.h"
#include "transports/posix/identity.h"
#include "transports/tcp/hello.h"

namespace kolo::tcp {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostStrangers = 64;
constexpr auto kRetryEvery = 50ms;
constexpr auto kLookAtStoreEvery = 100ms;

posix::Descriptor listen_in_range(const TcpSettings& settings, int rank) {
  if (settings.port_high == 0) return posix::listen_on(settings.host, 0);
  for (int port = settings.port_low;; ++port) {
    try {
      return posix::listen_on(settings.host, static_cast<std::uint16_t>(port));
    } catch (const Error& error) {
      if (port < settings.port_high) continue;  // taken: the next one
      throw Error(
          error.code(), kNoPeer,
          fmt::format("rank {}: no port from {} to {} (KOLO_TCP_PORTS) is left to listen on: "
                      "{}; every rank of a host takes one while ranks connect",
                      rank, settings.port_low, settings.port_high, error.what()));
    }
  }
}

// This host's address on the way to `host`: what a datagram would carry. Nothing is sent.
std::string address_towards(const std::string& host) {
  std::string why;
  for (const auto& address : posix::resolve(host, 9, why)) {
    const posix::Descriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.is_open() && ::connect(socket.get(), address.get(), address.length()) == 0) {
      return posix::local_address(socket).host();
    }
  }
  return "";
}

std::string address_to_publish(const TcpSettings& settings) {
  if (!settings.host.empty()) return settings.host;
  // Any address beyond the default route serves; this one is reserved for documentation.
  for (const std::string& host :
       {settings.rendezvous_host, std::string("192.0.2.1"), posix::host_name()}) {
    const std::string address = host.empty() ? "" : address_towards(host);
    if (!address.empty()) return address;
  }
  return "127.0.0.1";
}

// What a rank publishes: five lines.
struct Card {
  std::string identity;
  std::string host;
  std::uint16_t port = 0;
  std::size_t segment_bytes = 0;
  Token token{};  // rank 0's is the job's
  bool listens_on_all = true;
};

std::string write_card(const Card& card) {
  return fmt::format("{}\n{} {} {} {} {}\n", card.identity, card.host, card.port,
                     card.segment_bytes, to_text(card.token), card.listens_on_all ? 1 : 0);
}

Card read_card(const std::string& text, int rank) {
  std::istringstream stream(text);
  Card card;
  std::string token;
  std::getline(stream, card.identity);
  stream >> card.host >> card.port >> card.segment_bytes >> token >> card.listens_on_all;
  const auto parsed = token_from_text(token);
  if (!stream || !parsed) {
    throw Error(
        ErrorCode::kProtocol, rank,
        fmt::format("rank {} published an unreadable tcp address: is it another version of kolo?",
                    rank));
  }
  card.token = *parsed;
  return card;
}

// Bytes of a hello that come in bit by bit.
struct HelloReader {
  std::array<std::byte, kHelloBytes> bytes{};
  std::size_t filled = 0;

  enum class State { kWaiting, kComplete, kBroken };
  State read(const posix::Descriptor& socket) {
    const auto got = posix::receive_some(socket, bytes.data() + filled, kHelloBytes - filled);
    filled += got.bytes;
    if (got.is_closed || !may_become_hello(std::span(bytes).first(filled))) return State::kBroken;
    return filled == kHelloBytes ? State::kComplete : State::kWaiting;
  }
};

struct Stranger {
  posix::Descriptor socket;
  Clock::time_point since;
  HelloReader hello;
};

// The way to one lower rank.
struct Attempt {
  int rank = 0;
  posix::Address to;
  posix::Descriptor socket;
  bool is_connecting = true;
  HelloReader hello;
  Clock::time_point next_try{};
  std::string why = "no answer";  // why it is not connected yet
};

class Mesh {
 public:
  Mesh(const TransportRequest& request, const TcpSettings& settings)
      : request_(request),
        settings_(settings),
        listener_(listen_in_range(settings, request.rank)),
        peers_(static_cast<std::size_t>(request.size)) {}

  std::vector<Peer> run() {
    exchange_cards();
    for (int rank = 0; rank < request_.rank; ++rank) attempts_.push_back(attempt_to(rank));
    missing_ = request_.size - 1;
    const auto start = Clock::now();
    while (missing_ > 0) {
      if (Clock::now() >= request_.deadline) give_up(start);
      if (const auto failure = request_.store->failure())
        throw Error(ErrorCode::kAborted, kNoPeer, *failure);
      retry();
      wait();
      accept_strangers();
      hear_strangers();
      std::erase_if(attempts_, [this](Attempt& attempt) { return advance(attempt); });
    }
    return std::move(peers_);
  }

 private:
  void exchange_cards() {
    Card own;
    own.identity = posix::host_identity();
    own.host = address_to_publish(settings_);
    own.port = posix::local_address(listener_).port();
    own.segment_bytes = settings_.segment_bytes;
    own.token = random_token();
    own.listens_on_all = settings_.host.empty();
    const auto texts = exchange(*request_.store, request_.rank, request_.size, "address",
                                write_card(own), request_.deadline, "publish their tcp addresses");
    for (int rank = 0; rank < request_.size; ++rank) {
      cards_.push_back(read_card(texts[static_cast<std::size_t>(rank)], rank));
      if (cards_.back().segment_bytes == own.segment_bytes) continue;
      throw Error(
          ErrorCode::kMismatch, rank,
          fmt::format(
              "rank {} has tcp segments of {} bytes, rank {} of {}: set KOLO_SEGMENT_BYTES alike",
              request_.rank, own.segment_bytes, rank, cards_.back().segment_bytes));
    }
  }

  Attempt attempt_to(int rank) {
    const Card& card = cards_[static_cast<std::size_t>(rank)];
    const bool is_local = card.identity == posix::host_identity();
    const std::string host = is_local && card.listens_on_all ? "127.0.0.1" : card.host;
    Attempt attempt;
    attempt.rank = rank;
    std::string why;
    const auto addresses = posix::resolve(host, card.port, why);
    if (addresses.empty()) {
      throw Error(ErrorCode::kUnavailable, rank,
                  fmt::format("rank {}: cannot resolve the tcp address '{}' of rank {}: {}",
                              request_.rank, host, rank, why));
    }
    attempt.to = addresses.front();
    return attempt;
  }

  void retry() {
    for (Attempt& attempt : attempts_) {
      if (attempt.socket.is_open() || Clock::now() < attempt.next_try) continue;
      attempt.socket = posix::start_connecting(attempt.to);
      if (!attempt.socket.is_open() || (errno != 0 && errno != EINPROGRESS)) {
        drop(attempt, posix::error_text(errno));
      }
      attempt.is_connecting = true;
      attempt.hello = {};
    }
  }

  static void drop(Attempt& attempt, std::string why) {
    attempt.socket.close();
    attempt.why = std::move(why);
    attempt.next_try = Clock::now() + kRetryEvery;
  }

  void wait() {
    std::vector<pollfd> watched;
    watched.push_back({listener_.get(), POLLIN, 0});
    if (request_.store->descriptor() >= 0)
      watched.push_back({request_.store->descriptor(), POLLIN, 0});
    for (const auto& stranger : strangers_) watched.push_back({stranger.socket.get(), POLLIN, 0});
    bool is_retrying = false;
    for (const auto& attempt : attempts_) {
      is_retrying |= !attempt.socket.is_open();
      const short events = attempt.is_connecting ? POLLOUT : POLLIN;
      if (attempt.socket.is_open()) watched.push_back({attempt.socket.get(), events, 0});
    }
    const auto most = is_retrying ? kRetryEvery : kLookAtStoreEvery;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(request_.deadline - Clock::now());
    const auto time = std::clamp<std::chrono::milliseconds>(left, 0ms, most);
    ::poll(watched.data(), watched.size(), static_cast<int>(time.count()));
  }

  void accept_strangers() {
    while (true) {
      posix::Descriptor socket = posix::accept_from(listener_);
      if (!socket.is_open()) {
        // Out of descriptors: a waiting stranger's is better used.
        if ((errno == EMFILE || errno == ENFILE) && !strangers_.empty()) strangers_.pop_front();
        return;
      }
      strangers_.push_back({std::move(socket), Clock::now(), {}});
      if (strangers_.size() > kMostStrangers + peers_.size()) strangers_.pop_front();
    }
  }

  void hear_strangers() {
    const auto now = Clock::now();
    std::erase_if(strangers_, [&](Stranger& stranger) {
      switch (stranger.hello.read(stranger.socket)) {
        case HelloReader::State::kBroken:
          return true;
        case HelloReader::State::kWaiting:
          return now - stranger.since > settings_.hello_timeout;
        case HelloReader::State::kComplete:
          break;
      }
      greet(stranger);
      return true;
    });
  }

  void greet(Stranger& stranger) {
    const auto hello = decode(stranger.hello.bytes);
    if (!hello || hello->token != cards_[0].token || hello->to != request_.rank) return;
    if (hello->from <= request_.rank || hello->from >= request_.size) return;
    if (peers_[static_cast<std::size_t>(hello->from)].socket.is_open()) return;
    if (!say_hello(stranger.socket, hello->from)) return;
    settle(hello->from, std::move(stranger.socket));
  }

  // 64 bytes fit into the buffer of a fresh connection.
  bool say_hello(const posix::Descriptor& socket, int to) {
    const auto bytes = encode({cards_[0].token, request_.rank, to});
    return posix::send_some(socket, bytes.data(), bytes.size()).bytes == bytes.size();
  }

  // True once connected.
  bool advance(Attempt& attempt) {
    if (!attempt.socket.is_open()) return false;
    if (attempt.is_connecting) {
      pollfd watched{attempt.socket.get(), POLLOUT, 0};
      if (::poll(&watched, 1, 0) <= 0) return false;
      const int error = posix::connect_result(attempt.socket);
      if (error != 0) return drop(attempt, posix::error_text(error)), false;
      if (!say_hello(attempt.socket, attempt.rank)) return drop(attempt, "it hung up"), false;
      attempt.is_connecting = false;
      attempt.why = "it did not say hello";
    }
    const auto state = attempt.hello.read(attempt.socket);
    if (state == HelloReader::State::kWaiting) return false;
    const auto hello = decode(attempt.hello.bytes);
    const bool is_right = state == HelloReader::State::kComplete && hello &&
                          hello->token == cards_[0].token && hello->from == attempt.rank &&
                          hello->to == request_.rank;
    if (!is_right) return drop(attempt, "what listens there is not that rank"), false;
    settle(attempt.rank, std::move(attempt.socket));
    return true;
  }

  void settle(int rank, posix::Descriptor socket) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    const Card& card = cards_[static_cast<std::size_t>(rank)];
    peer.address = posix::host_and_port(card.host, card.port);
    peer.is_on_this_host = card.identity == posix::host_identity();
    peer.socket = std::move(socket);
    --missing_;
  }

  [[noreturn]] void give_up(Clock::time_point start) {
    std::string whom;
    int first = kNoPeer;
    for (int rank = 0; rank < request_.size; ++rank) {
      if (rank == request_.rank || peers_[static_cast<std::size_t>(rank)].socket.is_open())
        continue;
      if (first == kNoPeer) first = rank;
      const Card& card = cards_[static_cast<std::size_t>(rank)];
      std::string why = "it has not connected to this rank";
      for (const auto& attempt : attempts_) {
        if (attempt.rank == rank) why = attempt.why;
      }
      whom += fmt::format("{}rank {} at {} ({})", whom.empty() ? "" : ", ", rank,
                          posix::host_and_port(card.host, card.port), why);
    }
    const std::chrono::duration<double> waited = Clock::now() - start;
    throw Error(
        ErrorCode::kDeadline, first,
        fmt::format(
            "rank {} ({}): waited {:.1f} s for a tcp connection with {}: see whether a firewall is "
            "between, or set KOLO_TCP_HOST and KOLO_TCP_PORTS to what can be reached",
            request_.rank, posix::host_name(), waited.count(), whom));
  }

  const TransportRequest& request_;
  const TcpSettings& settings_;
  posix::Descriptor listener_;
  std::vector<Card> cards_;
  std::vector<Peer> peers_;
  std::vector<Attempt> attempts_;
  std::deque<Stranger> strangers_;  // oldest first
  int missing_ = 0;
};

}  // namespace

std::vector<Peer> connect_all(const TransportRequest& request, const TcpSettings& settings) {
  return Mesh(request, settings).run();
}

}  // namespace kolo::tcp
