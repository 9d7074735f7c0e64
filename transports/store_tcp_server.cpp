// The server of a TCP store: one thread, one epoll, tables in memory.
//
// A connection that has not said hello is a *stranger*: it gets a few kilobytes and a few seconds,
// and when too many of them wait the oldest goes. Strangers neither stop nor slow the ranks.
//
// A connection that joined as a rank and ends without kLeave is that rank's death: the server posts
// it as the job's failure and tells everybody.
#include <fmt/format.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transports/error.h"
#include "transports/posix/epoll.h"
#include "transports/posix/event.h"
#include "transports/posix/socket.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"
#include "transports/store_wire.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;
using store_wire::Kind;
using store_wire::Message;

constexpr std::size_t kMostStrangers = 64;
constexpr std::size_t kMostUnsentBytes = 64 << 20;
constexpr auto kPatienceAtTheEnd = 5s;  // for the last ranks to take their leave
constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kStop = 1;
constexpr std::uint64_t kFirstConnection = 2;

struct Connection {
  posix::Descriptor socket;
  Clock::time_point since;
  std::string who;  // empty: a stranger
  std::vector<int> ranks;
  std::string in;
  std::string out;
  bool waits_for_room = false;
};

class Server {
 public:
  Server(const std::string& host, std::uint16_t port)
      : listener_(posix::listen_on(host, port)), hello_timeout_(read_settings().hello_timeout) {
    epoll_.add(listener_.get(), EPOLLIN, kListener);
    epoll_.add(stop_.descriptor(), EPOLLIN, kStop);
  }

  std::uint16_t port() const { return posix::local_address(listener_).port(); }

  // From another thread: serve() says goodbye and returns.
  void stop() {
    is_stopping_.store(true);
    stop_.ring();
  }

  void serve() {
    auto end = Deadline::max();
    while (Clock::now() < end && !(is_stopping_.load() && is_everybody_gone())) {
      if (is_stopping_.load() && end == Deadline::max()) {
        epoll_.remove(stop_.descriptor());
        end = Clock::now() + kPatienceAtTheEnd;
      }
      std::array<epoll_event, 64> events{};
      for (const epoll_event& event : epoll_.wait(events, next_timeout_ms())) handle(event);
      drop_late_strangers();
    }
    for (auto& [token, connection] : connections_) reply(token, {Kind::kGoodbye, 0, 0, {}, {}});
  }

  void hang_up() {
    connections_.clear();
    listener_.close();
  }

 private:
  // Ranks that have joined and not left still need the store; after a failure nobody does, once
  // told.
  bool is_everybody_gone() const {
    for (const auto& [token, connection] : connections_) {
      if (!connection.out.empty() || (!failure_ && !connection.ranks.empty())) return false;
    }
    return true;
  }

  int next_timeout_ms() const {
    if (is_stopping_.load()) return 100;
    return strangers_.empty() && is_listening_ ? 1000 : 100;
  }

  void handle(const epoll_event& event) {
    const std::uint64_t token = event.data.u64;
    if (token == kStop) return;
    if (token == kListener) return accept_all();
    if ((event.events & EPOLLOUT) != 0) flush(token);
    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(token);
  }

  void accept_all() {
    while (true) {
      posix::Descriptor socket = posix::accept_from(listener_);
      if (!socket.is_open()) {
        if (errno == EMFILE || errno == ENFILE) make_room();
        return;
      }
      posix::set_low_latency(socket);
      posix::set_keepalive(socket);
      const std::uint64_t token = next_token_++;
      epoll_.add(socket.get(), EPOLLIN, token);
      Connection connection;
      connection.socket = std::move(socket);
      connection.since = Clock::now();
      connections_.emplace(token, std::move(connection));
      strangers_.push_back(token);
      if (strangers_.size() > kMostStrangers) drop_oldest_stranger();
    }
  }

  // No descriptor is left: a stranger's is taken; without strangers the listener rests a moment, or
  // it would be reported for ever.
  void make_room() {
    if (!strangers_.empty()) return drop_oldest_stranger();
    epoll_.remove(listener_.get());
    is_listening_ = false;
    rests_until_ = Clock::now() + 100ms;
  }

  void drop_oldest_stranger() {
    const std::uint64_t token = strangers_.front();
    strangers_.pop_front();
    connections_.erase(token);
  }

  void drop_late_strangers() {
    const auto now = Clock::now();
    if (!is_listening_ && now >= rests_until_) {
      epoll_.add(listener_.get(), EPOLLIN, kListener);
      is_listening_ = true;
    }
    while (!strangers_.empty() &&
           now - connections_.at(strangers_.front()).since > hello_timeout_) {
      drop_oldest_stranger();
    }
  }

  void read(std::uint64_t token) {
    std::array<char, 16384> bytes{};
    auto found = connections_.find(token);
    while (found != connections_.end()) {
      const auto got = posix::receive_some(found->second.socket, bytes.data(), bytes.size());
      if (got.is_closed) return lose(token, "closed without a goodbye");
      if (got.bytes == 0) return;
      found->second.in.append(bytes.data(), got.bytes);
      take_messages(token);
      found = connections_.find(token);
      if (got.bytes < bytes.size()) return;
    }
  }

  void take_messages(std::uint64_t token) {
    try {
      for (auto found = connections_.find(token); found != connections_.end();
           found = connections_.find(token)) {
        Connection& connection = found->second;
        if (connection.who.empty() && connection.in.size() > kLongestHello) {
          return lose(token, "said too much before its hello");
        }
        auto message = store_wire::take(connection.in);
        if (!message) return;
        if (connection.who.empty()) {
          greet(token, connection, *message);
        } else {
          serve_message(token, connection, std::move(*message));
        }
      }
    } catch (const Error&) {
      lose(token, "sent bytes that are no message of kolo's store");
    }
  }

  void greet(std::uint64_t token, Connection& connection, const Message& message) {
    if (message.kind != Kind::kHello) return lose(token, "did not say hello");
    std::erase(strangers_, token);
    const bool is_known = message.number == store_wire::kVersion;
    connection.who = message.value.empty() ? "unnamed" : message.value;
    reply(token, {Kind::kValue, message.id, store_wire::kVersion, {}, {}});
    if (is_known && failure_) reply(token, {Kind::kFailed, 0, 0, {}, *failure_});
  }

  void serve_message(std::uint64_t token, Connection& connection, Message message) {
    switch (message.kind) {
      case Kind::kSet: {
        const auto found =
            values_.insert_or_assign(std::move(message.key), std::move(message.value)).first;
        reply(token, {Kind::kValue, message.id, 0, {}, {}});
        return wake_waiters(found->first, found->second);
      }
      case Kind::kTryGet:
      case Kind::kGet:
        return look_up(token, message);
      case Kind::kForget:
        return forget(token, message.id);
      case Kind::kAdd:
        reply(token, {Kind::kValue, message.id, counters_[message.key] += message.number, {}, {}});
        return;
      case Kind::kJoin:
        connection.ranks.push_back(static_cast<int>(message.number));
        return;
      case Kind::kLeave:
        if (!connection.ranks.empty()) connection.ranks.pop_back();
        return;
      case Kind::kFail:
        fail(message.value);
        reply(token, {Kind::kValue, message.id, 0, {}, *failure_});
        return;
      default:
        return lose(token, "sent a message that only the server sends");
    }
  }

  void look_up(std::uint64_t token, const Message& message) {
    const auto found = values_.find(message.key);
    if (found != values_.end()) {
      reply(token, {Kind::kValue, message.id, 0, {}, found->second});
    } else if (message.kind == Kind::kTryGet) {
      reply(token, {Kind::kNothing, message.id, 0, {}, {}});
    } else {
      waiters_[message.key].push_back({token, message.id});
    }
  }

  void wake_waiters(const std::string& key, const std::string& value) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) return;
    const auto waiters = std::move(found->second);
    waiters_.erase(found);
    for (const auto& [token, id] : waiters) reply(token, {Kind::kValue, id, 0, {}, value});
  }

  void forget(std::uint64_t token, std::uint64_t id) {
    for (auto& [key, waiters] : waiters_) {
      std::erase_if(waiters,
                    [&](const Waiter& waiter) { return waiter.token == token && waiter.id == id; });
    }
  }

  void fail(const std::string& text) {
    if (failure_) return;
    failure_ = text;
    std::vector<std::uint64_t> known;
    for (const auto& [token, connection] : connections_) {
      if (!connection.who.empty()) known.push_back(token);
    }
    for (const auto token : known) reply(token, {Kind::kFailed, 0, 0, {}, text});
  }

  void lose(std::uint64_t token, const char* how) {
    const auto found = connections_.find(token);
    if (found == connections_.end()) return;
    const Connection lost = std::move(found->second);
    connections_.erase(found);
    if (lost.who.empty()) std::erase(strangers_, token);
    if (!lost.ranks.empty()) {
      fail(fmt::format(
          "rank {} ({}) is gone: its connection to the store {}; look at its last output",
          lost.ranks.front(), lost.who, how));
    }
  }

  void reply(std::uint64_t token, const Message& message) {
    const auto found = connections_.find(token);
    if (found == connections_.end()) return;
    found->second.out += store_wire::encode(message);
    flush(token);
  }

  void flush(std::uint64_t token) {
    const auto found = connections_.find(token);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    while (!connection.out.empty()) {
      const auto sent =
          posix::send_some(connection.socket, connection.out.data(), connection.out.size());
      // A dead connection is noticed by read(), which epoll now calls.
      if (sent.is_closed) connection.out.clear();
      if (sent.bytes == 0) break;
      connection.out.erase(0, sent.bytes);
    }
    if (connection.out.size() > kMostUnsentBytes) connection.out.clear();
    const bool waits = !connection.out.empty();
    if (waits == connection.waits_for_room) return;
    connection.waits_for_room = waits;
    const std::uint32_t events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN;
    epoll_.change(connection.socket.get(), events, token);
  }

  struct Waiter {
    std::uint64_t token;
    std::uint64_t id;
  };
  static constexpr std::size_t kLongestHello = 4096;

  posix::Descriptor listener_;
  const std::chrono::milliseconds hello_timeout_;
  posix::Epoll epoll_;
  posix::Event stop_;
  std::atomic<bool> is_stopping_{false};
  bool is_listening_ = true;
  Clock::time_point rests_until_{};

  std::uint64_t next_token_ = kFirstConnection;
  std::map<std::uint64_t, Connection> connections_;
  std::deque<std::uint64_t> strangers_;  // oldest first
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::int64_t> counters_;
  std::unordered_map<std::string, std::vector<Waiter>> waiters_;
  std::optional<std::string> failure_;
};

}  // namespace

struct TcpStoreServer::State {
  State(const std::string& host, std::uint16_t asked_port)
      : server(host, asked_port), port(server.port()), thread([this] { run(); }) {}

  void run() {
    try {
      server.serve();
    } catch (const std::exception&) {
      server.hang_up();  // every client sees its connection end, and says so
    }
  }

  Server server;
  const std::uint16_t port;
  std::thread thread;  // last: it uses the others
};

TcpStoreServer::TcpStoreServer(const std::string& host, std::uint16_t port)
    : state_(std::make_unique<State>(host, port)) {}

TcpStoreServer::~TcpStoreServer() {
  state_->server.stop();
  state_->thread.join();
}

std::uint16_t TcpStoreServer::port() const { return state_->port; }

}  // namespace kolo
