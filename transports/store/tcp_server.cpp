// Server of a TCP store: one thread, one epoll, and the tables of service.h.
//
// A connection is *unknown* until its hello. It may send a few kilobytes and take a few seconds
// (Settings::hello_timeout). If too many unknown connections wait, the oldest is dropped. Each pass
// of the loop limits the accepts, and the reads of one connection. So connections of other programs
// neither stop nor slow the ranks.
#include <fmt/format.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "transports/posix/epoll.h"
#include "transports/posix/event.h"
#include "transports/posix/socket.h"
#include "transports/posix/thread.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"
#include "transports/store/service.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;
using store_wire::Message;

constexpr std::size_t kMostUnknownClients = 64;
constexpr int kMostAccepted = 64;  // in one pass of the loop
constexpr int kMostReads = 64;     // of a connection in one pass: 1 MiB
constexpr std::size_t kMostUnsentBytes = 64 << 20;
constexpr auto kPatienceAtTheEnd = 5s;     // for the last ranks to leave
constexpr auto kPatienceWithTheLate = 1s;  // for late ranks of a failed job, to report the failure
constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kStop = 1;
constexpr std::uint64_t kFirstConnection = 2;

struct Connection {
  posix::Descriptor socket;
  Clock::time_point since;
  std::string out;
  std::size_t sent = 0;  // bytes of `out` that the socket has taken
  bool waits_for_room = false;
  bool has_replies = false;                         // not yet given to the socket
  const char* ending = "closed without a goodbye";  // for the message after its end
};

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

class Server {
 public:
  Server(const std::string& host, std::uint16_t port, int size, const std::string& job)
      : listener_(posix::listen_on(host, port)),
        hello_timeout_(read_settings().hello_timeout),
        service_([this](std::uint64_t token, const Message& message) { reply(token, message); },
                 size, job, random_id()) {
    epoll_.add(listener_.get(), EPOLLIN, kListener);
    epoll_.add(stop_.descriptor(), EPOLLIN, kStop);
  }

  std::uint16_t port() const { return posix::local_address(listener_).port(); }

  // Called from another thread: makes serve() say goodbye and return.
  void stop() {
    is_stopping_.store(true);
    stop_.ring();
  }

  void serve() {
    std::optional<Clock::time_point> stopped;
    while (!stopped || !is_over(*stopped)) {
      if (is_stopping_.load() && !stopped) {
        epoll_.remove(stop_.descriptor());
        stopped = Clock::now();
        continue;
      }
      std::array<epoll_event, 64> events{};
      for (const epoll_event& event : epoll_.wait(events, next_timeout_ms())) handle(event);
      drop_late_unknown_clients();
    }
    hear_the_last();
    service_.say_goodbye();
    flush_replies();
  }

  void hang_up() {
    connections_.clear();
    listener_.close();
  }

 private:
  // After a failure no client needs the store once it has been told.
  bool is_over(Clock::time_point stopped) const {
    const auto waited = Clock::now() - stopped;
    if (waited >= kPatienceAtTheEnd) return true;
    if (service_.is_awaited() && waited < kPatienceWithTheLate) return false;
    return is_everybody_told() && !service_.is_needed();
  }

  bool is_everybody_told() const {
    return std::ranges::all_of(connections_,
                               [](const auto& each) { return each.second.out.empty(); });
  }

  // Reads the hellos of clients that connected during the last pass.
  void hear_the_last() {
    accept_some();
    const auto unknown_clients = unknown_clients_;
    for (const std::uint64_t token : unknown_clients) read(token);
  }

  int next_timeout_ms() const {
    if (is_stopping_.load()) return 100;
    return unknown_clients_.empty() && is_listening_ ? 1000 : 100;
  }

  void handle(const epoll_event& event) {
    const std::uint64_t token = event.data.u64;
    if (token == kStop) return;
    if (token == kListener) return accept_some();
    if ((event.events & EPOLLOUT) != 0) flush(token);
    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) read(token);
  }

  void accept_some() {
    for (int i = 0; i < kMostAccepted; ++i) {
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
      service_.add(token);
      unknown_clients_.push_back(token);
      if (unknown_clients_.size() > kMostUnknownClients) drop_oldest_unknown_client();
    }
  }

  // Handles a lack of file descriptors: drops the oldest unknown connection. Without one, the
  // listener pauses for 100 ms, as epoll would report it again and again.
  void make_room() {
    if (!unknown_clients_.empty()) return drop_oldest_unknown_client();
    epoll_.remove(listener_.get());
    is_listening_ = false;
    rests_until_ = Clock::now() + 100ms;
  }

  // Reads first, as its hello may have arrived since the last read.
  void drop_oldest_unknown_client() {
    const std::uint64_t token = unknown_clients_.front();
    read(token);
    if (service_.is_unknown(token)) lose(token, "sent no hello");
  }

  void drop_late_unknown_clients() {
    const auto now = Clock::now();
    if (!is_listening_ && now >= rests_until_) {
      epoll_.add(listener_.get(), EPOLLIN, kListener);
      is_listening_ = true;
    }
    while (!unknown_clients_.empty() &&
           now - connections_.at(unknown_clients_.front()).since > hello_timeout_) {
      drop_oldest_unknown_client();
    }
  }

  void read(std::uint64_t token) {
    std::array<char, 16384> bytes{};
    for (int i = 0; i < kMostReads; ++i) {
      const auto found = connections_.find(token);
      if (found == connections_.end()) return;
      const auto got = posix::receive_some(found->second.socket, bytes.data(), bytes.size());
      if (got.is_closed) return lose(token, found->second.ending);
      if (got.bytes == 0) return;
      const bool was_unknown = service_.is_unknown(token);
      const char* const why = service_.hear(token, {bytes.data(), got.bytes});
      flush_replies();
      if (why != nullptr) return lose(token, why);
      if (was_unknown && !service_.is_unknown(token)) std::erase(unknown_clients_, token);
      if (got.bytes < bytes.size()) return;
    }
  }

  void lose(std::uint64_t token, const char* how) {
    connections_.erase(token);
    std::erase(unknown_clients_, token);  // its hello may have been in the bytes just read
    service_.remove(token, how);
    flush_replies();
  }

  void reply(std::uint64_t token, const Message& message) {
    const auto found = connections_.find(token);
    if (found == connections_.end()) return;
    found->second.out += store_wire::encode(message);
    if (!std::exchange(found->second.has_replies, true)) has_replies_.push_back(token);
  }

  // Sends replies together: a client that asks for many keys at once gets few packets.
  void flush_replies() {
    for (const std::uint64_t token : has_replies_) {
      const auto found = connections_.find(token);
      if (found == connections_.end()) continue;
      found->second.has_replies = false;
      flush(token);
    }
    has_replies_.clear();
  }

  void flush(std::uint64_t token) {
    const auto found = connections_.find(token);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    while (connection.sent < connection.out.size()) {
      const auto sent = posix::send_some(connection.socket, connection.out.data() + connection.sent,
                                         connection.out.size() - connection.sent);
      // epoll reports a dead connection as readable, and read() then handles it.
      if (sent.is_closed) connection.sent = connection.out.size();
      if (sent.bytes == 0) break;
      connection.sent += sent.bytes;
    }
    if (connection.out.size() - connection.sent > kMostUnsentBytes) give_up(connection);
    forget_sent(connection);
    const bool waits = !connection.out.empty();
    if (waits == connection.waits_for_room) return;
    connection.waits_for_room = waits;
    const std::uint32_t events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN;
    epoll_.change(connection.socket.get(), events, token);
  }

  // Closes a connection that does not take its replies. No more can be sent on it, as a message may
  // have been sent in part.
  static void give_up(Connection& connection) {
    connection.ending = "was ended, as it did not take the answers that it had asked for";
    connection.sent = connection.out.size();
    ::shutdown(connection.socket.get(), SHUT_RDWR);  // read() notices
  }

  // Moves the unsent bytes to the front only once they are the smaller part, as moving costs time.
  static void forget_sent(Connection& connection) {
    if (connection.sent < connection.out.size() && connection.sent < connection.out.size() / 2)
      return;
    connection.out.erase(0, connection.sent);
    connection.sent = 0;
  }

  posix::Descriptor listener_;
  const std::chrono::milliseconds hello_timeout_;
  posix::Epoll epoll_;
  posix::Event stop_;
  std::atomic<bool> is_stopping_{false};
  bool is_listening_ = true;
  Clock::time_point rests_until_{};

  std::uint64_t next_token_ = kFirstConnection;
  std::map<std::uint64_t, Connection> connections_;
  std::deque<std::uint64_t> unknown_clients_;  // oldest first
  std::vector<std::uint64_t> has_replies_;     // connections
  StoreService service_;
};

}  // namespace

struct TcpStoreServer::State {
  State(const std::string& host, std::uint16_t asked_port, int size, const std::string& job)
      : server(host, asked_port, size, job),
        port(server.port()),
        thread(posix::start_thread("the store's server", [this] { run(); })) {}

  void run() {
    try {
      server.serve();
    } catch (const std::exception&) {
      server.hang_up();  // every client sees its connection end, and reports it
    }
  }

  Server server;
  const std::uint16_t port;
  std::thread thread;  // last, as it uses the other members
};

TcpStoreServer::TcpStoreServer(const std::string& host, std::uint16_t port, int size,
                               const std::string& job)
    : state_(std::make_unique<State>(host, port, size, job)) {}

TcpStoreServer::~TcpStoreServer() {
  state_->server.stop();
  state_->thread.join();
}

std::uint16_t TcpStoreServer::port() const { return state_->port; }

}  // namespace kolo::inline v0
