#include "transports/tcp/listener.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0::tcp {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostUnknownClients = 64;
constexpr std::size_t kMostAccepted = 64;  // in one look()
constexpr auto kBacklogWaits = 1ms;
constexpr auto kRetryEvery = 50ms;
constexpr int kHelloTimePart = 20;

constexpr const char* kOtherProgram =
    "closed the connection before its hello: another program may have its port";

constexpr std::uint32_t kAnyEvent = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

// Turns the wildcard addresses into an empty host, as they cannot be published.
TcpSettings with_host(TcpSettings settings) {
  if (settings.host == "0.0.0.0" || settings.host == "::") settings.host.clear();
  return settings;
}

posix::Descriptor listen_in_range(const TcpSettings& settings, int rank) {
  if (settings.port_high == 0) return posix::listen_on(settings.host, 0);
  for (int port = settings.port_low;; ++port) {
    try {
      return posix::listen_on(settings.host, static_cast<std::uint16_t>(port));
    } catch (const Error& error) {
      if (port < settings.port_high) continue;  // in use: try the next one
      throw Error(
          error.code(), kNoPeer,
          fmt::format("rank {}: no port from {} to {} (KOLO_TCP_PORTS) is left to listen on: "
                      "{}; the range must hold a port for each rank of a host, and for each of its "
                      "communicators",
                      rank, settings.port_low, settings.port_high, error.what()));
    }
  }
}

// The addresses to connect to. An address that this host has as well, such as a bridge of
// containers, would lead back here.
std::vector<posix::Address> resolve(const EndpointAddress& own, const EndpointAddress& theirs,
                                    int rank, int peer) {
  std::vector<std::string> hosts;
  for (const std::string& host : theirs.hosts) {
    if (theirs.is_on_this_host || std::ranges::find(own.hosts, host) == own.hosts.end())
      hosts.push_back(host);
  }
  if (theirs.is_on_this_host && theirs.listens_on_all) hosts = {"127.0.0.1", "::1"};
  if (hosts.empty()) hosts = theirs.hosts;
  std::vector<posix::Address> addresses;
  std::string why;
  for (const std::string& host : hosts) {
    for (const posix::Address& address : posix::resolve(host, theirs.port, why))
      addresses.push_back(address);
  }
  if (!addresses.empty()) return addresses;
  throw Error(ErrorCode::kUnavailable, peer,
              fmt::format("rank {}: cannot resolve the tcp address '{}' of rank {}: {}", rank,
                          hosts.front(), peer, why));
}

// This host has no such network, so the address says nothing about the peer.
bool is_out_of_reach(int error) {
  return error == EADDRNOTAVAIL || error == ENETUNREACH || error == EAFNOSUPPORT;
}

bool is_exhausted(int error) { return error == EMFILE || error == ENFILE; }

bool has_hung_up(const posix::Descriptor& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace

std::string no_congestion(const std::string& name) {
  return fmt::format(
      "KOLO_TCP_CONGESTION='{}': this kernel does not have it, or does not allow it to all users; "
      "/proc/sys/net/ipv4/tcp_allowed_congestion_control lists the allowed ones",
      name);
}

bool set_congestion(const posix::Descriptor& socket, const std::string& name) {
  return ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                      static_cast<socklen_t>(name.size())) == 0;
}

Listener::Listener(const TransportRequest& request, const TcpSettings& settings,
                   posix::Epoll& watch)
    : rank_(request.rank),
      size_(request.size),
      settings_(with_host(settings)),
      watch_(watch),
      listener_(listen_in_range(settings_, request.rank)),
      owners_(static_cast<std::size_t>(request.size)) {
  const std::string& congestion = settings_.congestion;
  if (!congestion.empty() && congestion != "system" && !set_congestion(listener_, congestion))
    throw Error(ErrorCode::kUnavailable, kNoPeer, no_congestion(congestion));
  posix::set_buffers(listener_, settings_.buffer_bytes);
  watch_.add(listener_.get(), EPOLLIN | EPOLLET, static_cast<std::uint64_t>(size_));
  watch_.add(timer_.descriptor(), EPOLLIN | EPOLLET, static_cast<std::uint64_t>(size_));
  peer_addresses_ = exchange_addresses(request, settings_, posix::local_address(listener_));
  for (int peer = 0; peer < size_; ++peer)
    addresses_.push_back(resolve(address_of(rank_), address_of(peer), rank_, peer));
  best_.resize(addresses_.size());
}

void Listener::call(int peer, std::uint32_t lane, When when) {
  const auto now = Clock::now();
  for (Call& call : calls_) {
    if (call.peer != peer || call.lane != lane || call.is_done) continue;
    if (when == When::kNow && !call.has_tried) call.next_try = std::min(call.next_try, now);
    return;
  }
  calls_.push_back({});
  calls_.back().peer = peer;
  calls_.back().lane = lane;
  calls_.back().next_try = when == When::kNow ? now : now + kSenderComesWithin;
  calls_.back().address = best_[static_cast<std::size_t>(peer)];
  calls_.back().why.resize(addresses_of(peer));
}

void Listener::call_again(int peer) {
  call(peer, 0, When::kIfNobodyComes);
  for (Call& call : calls_) {
    if (call.peer == peer && call.lane == 0)
      call.why[call.address] = fmt::format("it {}", kOtherProgram);
  }
  set_alarm();
}

void Listener::wake_at(Clock::time_point time) {
  if (std::ranges::find(wakes_, time) == wakes_.end()) wakes_.push_back(time);
  set_alarm();
}

void Listener::set_alarm() {
  auto next = Clock::time_point::max();
  for (const Call& call : calls_) {
    if (call.is_done) continue;
    if (!call.socket.is_open()) {
      next = std::min(next, call.next_try);
    } else if (addresses_of(call.peer) > 1) {
      next = std::min(next, call.started + kAddressTakes);
    }
  }
  for (const auto time : wakes_) next = std::min(next, time);
  if (next != Clock::time_point::max() && next != alarm_) timer_.set(alarm_ = next);
}

void Listener::look(bool is_waited_for) {
  if (!is_open()) return;
  is_waited_for_ = is_waited_for;
  // Before hear_all(): so the descriptor of a silent connection goes to one that waits to be
  // accepted rather than to an own call.
  const auto now = Clock::now();
  hear_all();
  for (std::size_t i = 0; i < calls_.size(); ++i) {  // a tenant may call again meanwhile
    if (!calls_[i].is_done && !calls_[i].socket.is_open() && calls_[i].next_try <= now)
      start(calls_[i]);
    if (!calls_[i].is_done && calls_[i].socket.is_open()) advance(calls_[i]);
  }
  std::erase_if(calls_, [](const Call& call) { return call.is_done && !call.has_given_up; });
  std::erase_if(wakes_, [&](const auto time) { return time <= now; });
  set_alarm();
}

// --- accepted connections ---

void Listener::hear_all() {
  accept_some();
  const auto now = Clock::now();
  std::erase_if(unknown_clients_, [&](UnknownClient& unknown_client) {
    return hear(unknown_client) || now - unknown_client.since > settings_.hello_timeout;
  });
}

// Reads each new connection at once: most hellos have arrived by now, so that these connections
// cannot be dropped as silent.
//
// Accepts at most kMostAccepted connections, so that other work goes on; the rest waits.
void Listener::accept_some() {
  why_kept_out_.clear();
  for (std::size_t accepted = 0;; ++accepted) {
    has_left_some_ = accepted == kMostAccepted;
    if (has_left_some_) return wake_at(Clock::now() + kBacklogWaits);
    UnknownClient unknown_client{posix::accept_from(listener_), Clock::now(), {}};
    if (unknown_client.socket.is_open()) {
      if (hear(unknown_client)) continue;
      watch_.add(unknown_client.socket.get(), EPOLLIN | EPOLLET, static_cast<std::uint64_t>(size_));
      unknown_clients_.push_back(std::move(unknown_client));
      if (unknown_clients_.size() > kMostUnknownClients + owners_.size()) drop_oldest();
    } else if (errno == ECONNABORTED || errno == EPROTO || errno == EINTR) {
      continue;  // this connection has ended already
    } else if (!is_exhausted(errno)) {
      return;
    } else if (!unknown_clients_.empty()) {
      has_left_some_ = Clock::now() < oldest_may_be_dropped();
      if (has_left_some_) return wake_at(oldest_may_be_dropped());
      drop_oldest();  // frees the descriptor of a silent connection
    } else if (is_waited_for_ || is_calling()) {
      throw_exhausted(errno);
    } else {
      why_kept_out_ = exhausted_text(errno);
      return;  // no channel of this rank waits for a connection; a later look() retries
    }
  }
}

// Reads first, as its hello may have arrived since the last read.
void Listener::drop_oldest() {
  hear(unknown_clients_.front());
  unknown_clients_.pop_front();
}

bool Listener::is_calling() const {
  return std::any_of(calls_.begin(), calls_.end(), [](const Call& call) { return !call.is_done; });
}

Clock::time_point Listener::oldest_may_be_dropped() const {
  return unknown_clients_.front().since + settings_.hello_timeout / kHelloTimePart;
}

// True if the connection is finished: its hello is complete, or it is broken.
bool Listener::hear(UnknownClient& unknown_client) {
  const auto state = unknown_client.hello.read(unknown_client.socket);
  if (state == HelloReader::State::kComplete) greet(unknown_client);
  return state != HelloReader::State::kWaiting;
}

void Listener::greet(UnknownClient& unknown_client) {
  const auto hello = unknown_client.hello.hello();
  if (!hello || hello->token != token() || hello->to != rank_) return;
  if (hello->from < 0 || hello->from >= size_) return;
  ConnectionOwner* const owner = owners_[static_cast<std::size_t>(hello->from)];
  if (owner == nullptr) return;  // this rank itself, or a rank that another transport joins
  prepare(unknown_client.socket, hello->from);
  const int socket = unknown_client.socket.get();
  if (!owner->take(unknown_client.socket, &*hello, hello->lane)) return;
  watch_.remove(socket);
  watch_.add(socket, kAnyEvent, static_cast<std::uint64_t>(hello->from));
  for (Call& call : calls_) {
    if (call.peer == hello->from && call.lane == hello->lane) call.is_done = true;
  }
}

// --- connections made by this rank ---

void Listener::start(Call& call) {
  call.has_tried = true;
  call.started = Clock::now();
  const auto connect = [&] {
    return posix::start_connecting(addresses_[static_cast<std::size_t>(call.peer)][call.address],
                                   settings_.buffer_bytes);
  };
  call.socket = connect();
  while (!call.socket.is_open() && is_exhausted(errno) && !unknown_clients_.empty()) {
    call.next_try = oldest_may_be_dropped();
    if (call.started < call.next_try) return;
    drop_oldest();  // frees the descriptor of a silent connection
    call.socket = connect();
  }
  if (!call.socket.is_open()) {
    if (is_exhausted(errno) && call.lane == 0) throw_exhausted(errno);
    return fail(call, errno);
  }
  if (errno != 0 && errno != EINPROGRESS) return fail(call, errno);
  prepare(call.socket, call.peer);
  watch_.add(call.socket.get(), kAnyEvent, static_cast<std::uint64_t>(size_));
}

void Listener::advance(Call& call) {
  pollfd watched{call.socket.get(), POLLOUT, 0};
  if (::poll(&watched, 1, 0) <= 0) {
    const bool has_more = addresses_of(call.peer) > 1;
    if (has_more && Clock::now() - call.started >= kAddressTakes) fail(call, ETIMEDOUT);
    return;
  }
  if (const int error = posix::connect_result(call.socket)) return fail(call, error);
  // The peer drops connections that are slow to send their hello.
  if (has_hung_up(call.socket)) {
    call.is_in_doubt = true;
    return try_next(call, fmt::format("it {}", kOtherProgram));
  }
  posix::Descriptor socket = std::move(call.socket);
  const int number = socket.get();
  const int peer = call.peer;
  best_[static_cast<std::size_t>(peer)] = call.address;
  call.is_done = true;
  // Before take(), as the owner may close the socket at once.
  watch_.change(number, kAnyEvent, static_cast<std::uint64_t>(peer));
  owners_[static_cast<std::size_t>(peer)]->take(socket, nullptr, call.lane);
}

void Listener::fail(Call& call, int error) {
  call.is_refused |= error == ECONNREFUSED;
  call.is_in_doubt |= error != ECONNREFUSED && !is_out_of_reach(error);
  try_next(call, posix::connect_error_text(error));
}

void Listener::try_next(Call& call, std::string why) {
  call.socket.close();
  call.why[call.address] = std::move(why);
  call.address = (call.address + 1) % addresses_of(call.peer);
  call.next_try = Clock::now();
  if (++call.tried == addresses_of(call.peer)) end_round(call);
}

// A rank listens until its transport is destroyed. So a refusal by all reachable addresses means
// that the peer has ended. On another host, a firewall or a wrong address can also be the cause.
void Listener::end_round(Call& call) {
  const auto now = Clock::now();
  const bool is_refused = call.is_refused && !call.is_in_doubt;
  call.tried = 0;
  call.is_refused = call.is_in_doubt = false;
  call.is_done = call.lane > 0;  // extra lanes are optional, so they are not retried
  call.next_try = now + kRetryEvery;
  if (!is_refused) call.refused_since = {};
  if (!is_refused || call.is_done) return;
  if (call.refused_since == Clock::time_point{}) call.refused_since = now;
  // Data that the peer sent before its end may still arrive.
  const bool is_near = address_of(call.peer).is_on_this_host;
  if (!is_near && now - call.refused_since < settings_.on_its_way) return;
  hear_all();  // the peer may have connected before it ended
  if (call.is_done || has_left_some_) return;
  call.is_done = true;
  call.has_given_up = !is_near;
  owners_[static_cast<std::size_t>(call.peer)]->cannot_connect(
      is_near ? "no process listens there any more: its process has ended, look at its last output"
              : "the connection is refused: its process has ended (look at its last output), or a "
                "firewall refuses it (open its port, KOLO_TCP_PORTS), or the address belongs to "
                "another machine (set KOLO_TCP_HOST on its host, or behind address translation "
                "(NAT) KOLO_TCP_ADVERTISE, to an address that can be reached)");
}

// --- both ---

void Listener::prepare(const posix::Descriptor& socket, int peer) const {
  posix::set_low_latency(socket);
  posix::set_keepalive(socket);
  const std::string& congestion = settings_.congestion;
  if (congestion == "system") return;
  if (!congestion.empty()) {
    set_congestion(socket, congestion);  // cannot fail, as the listener has it already
  } else if (address_of(peer).is_on_this_host && !set_congestion(socket, "reno")) {
    set_congestion(socket, "cubic");
  }
}

std::string Listener::why_unconnected(int peer) const {
  for (const Call& call : calls_) {
    const bool is_missing = !call.is_done || call.has_given_up;
    if (call.peer != peer || call.lane > 0 || !is_missing) continue;
    std::vector<std::string> tried;
    const auto& addresses = addresses_[static_cast<std::size_t>(peer)];
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      tried.push_back(fmt::format("{} ({})",
                                  posix::host_and_port(addresses[i].host(), addresses[i].port()),
                                  call.why[i].empty() ? "no answer yet" : call.why[i]));
    }
    return fmt::format(
        "no tcp connection to rank {} was made, at {}; check for a firewall between the hosts, or "
        "set KOLO_TCP_HOST (behind address translation (NAT) KOLO_TCP_ADVERTISE) to an address and "
        "KOLO_TCP_PORTS to ports that can be reached",
        peer, fmt::join(tried, ", "));
  }
  return why_kept_out_;
}

void Listener::close() noexcept {
  listener_.close();
  unknown_clients_.clear();
  calls_.clear();
}

std::string Listener::exhausted_text(int error) const {
  return fmt::format(
      "no file descriptor is left for a tcp connection ({}); ring and tree algorithms need fewer, "
      "since they connect fewer pairs of ranks",
      posix::error_text(error));
}

void Listener::throw_exhausted(int error) const {
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("rank {}: {}", rank_, exhausted_text(error)));
}

}  // namespace kolo::inline v0::tcp
