#include "transports/posix/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0::posix {

namespace {

constexpr int kBacklog = 1024;

void set_option(const Descriptor& socket, int level, int name, int value) {
  // Best effort: the connection works without the option.
  static_cast<void>(::setsockopt(socket.get(), level, name, &value, sizeof value));
}

Descriptor open_socket(int family) {
  return Descriptor::not_inherited(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

Address any_address(int family, std::uint16_t port) {
  if (family == AF_INET6) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    any.sin6_port = htons(port);
    return {reinterpret_cast<const sockaddr*>(&any), sizeof any};
  }
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  any.sin_port = htons(port);
  return {reinterpret_cast<const sockaddr*>(&any), sizeof any};
}

constexpr std::string_view kNoFreePort = "no free port is left";
constexpr std::string_view kMorePorts =
    "end programs with many connections, or widen net.ipv4.ip_local_port_range with sysctl";

// The kernel has one errno for a port that is taken, and for no port to choose.
std::string why_not_bound(int number, std::uint16_t port) {
  if (number == EADDRNOTAVAIL) return "this host has no such address";
  if (number != EADDRINUSE) return error_text(number);
  if (port == 0) return fmt::format("{}: {}", kNoFreePort, kMorePorts);
  return error_text(number) + ": another program has it, choose another port";
}

// Not open, with errno set, on failure.
Descriptor try_to_listen(const Address& address, bool takes_both_families) {
  Descriptor socket = open_socket(address.family());
  if (!socket.is_open()) return socket;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) {
    set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, takes_both_families ? 0 : 1);
  }
  if (::bind(socket.get(), address.get(), address.length()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    socket.close();
    errno = error;
  }
  return socket;
}

Transfer outcome(ssize_t result) {
  if (result > 0) return {static_cast<std::size_t>(result), false, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {0, true, errno};
}

// A TCP connection to a free local port can connect to itself: the kernel may choose that port as
// the source port (RFC 9293, simultaneous open).
bool is_connected_to_itself(const Descriptor& socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_length = sizeof here;
  socklen_t there_length = sizeof there;
  return ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &here_length) == 0 &&
         ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &there_length) == 0 &&
         here_length == there_length && std::memcmp(&here, &there, here_length) == 0;
}

Transfer receive_once(const Descriptor& socket, void* into, std::size_t bytes) {
  const ssize_t got = ::recv(socket.get(), into, bytes, 0);
  if (got == 0) return {0, true, 0};
  return outcome(got);
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length) : length_(length) {
  std::memcpy(&storage_, address, length);
}

std::uint16_t Address::port() const {
  if (family() == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

void Address::set_port(std::uint16_t port) {
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
  }
}

bool Address::is_loopback() const {
  if (family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6);
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr;
  return ntohl(v4.s_addr) >> 24 == 127;
}

std::string Address::host() const {
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(get(), length_, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  const std::string host = text;
  const std::string mapped = "::ffff:";  // IPv4 peer of a dual-stack socket
  return host.compare(0, mapped.size(), mapped) == 0 ? host.substr(mapped.size()) : host;
}

std::string host_and_port(const std::string& host, std::uint16_t port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_v6 ? "[{}]:{}" : "{}:{}"), host, port);
}

namespace {

std::vector<Address> both(std::vector<Address> some, const std::vector<Address>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

using FoundAddresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Result of the system's resolver.
struct Lookup {
  int error = EAI_AGAIN;
  FoundAddresses found{nullptr, ::freeaddrinfo};
};

Lookup look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  Lookup lookup;
  lookup.error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (lookup.error == 0) lookup.found.reset(found);
  return lookup;
}

// nullopt: not before the deadline. The thread holds all that it uses.
std::optional<Lookup> look_up_until(const std::string& host,
                                    std::chrono::steady_clock::time_point deadline) {
  Lookup numeric = look_up(host, AI_NUMERICHOST);
  if (numeric.error == 0) return numeric;
  std::promise<Lookup> promise;
  std::future<Lookup> result = promise.get_future();
  try {
    std::thread([host, promise = std::move(promise)]() mutable {
      promise.set_value(look_up(host, 0));
    }).detach();
  } catch (const std::system_error&) {  // no room for a thread
    return look_up(host, 0);
  }
  if (result.wait_until(deadline) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace

std::vector<Address> resolve(const std::string& host, std::uint16_t port, std::string& why,
                             std::optional<std::chrono::steady_clock::time_point> deadline) {
  const std::optional<Lookup> lookup = deadline ? look_up_until(host, *deadline) : look_up(host, 0);
  if (!lookup) {
    why = "the name was not resolved in time";
    return {};
  }
  if (lookup->error != 0) {
    // "localhost" always means this machine (RFC 6761). A minimal system may have no /etc/hosts.
    if (host == "localhost")
      return both(resolve("127.0.0.1", port, why), resolve("::1", port, why));
    why = ::gai_strerror(lookup->error);
    return {};
  }
  std::vector<Address> addresses;
  for (const addrinfo* entry = lookup->found.get(); entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
    addresses.back().set_port(port);
  }
  if (addresses.empty()) why = "it has neither an IPv4 nor an IPv6 address";
  return addresses;
}

bool is_loopback_only(const std::string& host) {
  if (host == "localhost") return true;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  return Address(found->ai_addr, found->ai_addrlen).is_loopback();
}

Descriptor listen_on(const std::string& host, std::uint16_t port) {
  Descriptor socket;
  std::string why;
  if (host.empty()) {
    socket = try_to_listen(any_address(AF_INET6, port), true);
    if (!socket.is_open() && errno != EADDRINUSE) {
      socket = try_to_listen(any_address(AF_INET, port), false);
    }
  } else {
    for (const Address& address : resolve(host, port, why)) {
      socket = try_to_listen(address, false);
      if (socket.is_open()) break;
    }
  }
  if (socket.is_open()) return socket;
  if (why.empty()) why = why_not_bound(errno, port);
  throw Error(ErrorCode::kUnavailable, kNoPeer,
              fmt::format("cannot listen on {} of {}: {}",
                          port == 0 ? "a free port" : fmt::format("port {}", port),
                          host.empty() ? "all addresses" : host, why));
}

std::string connect_error_text(int number) {
  if (number != EADDRNOTAVAIL) return error_text(number);
  return fmt::format("{} for the connection: {}", kNoFreePort, kMorePorts);
}

Descriptor accept_from(const Descriptor& listener) {
  return Descriptor::not_inherited(
      ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

Descriptor start_connecting(const Address& to, int buffer_bytes) {
  Descriptor socket = open_socket(to.family());
  if (socket.is_open()) {
    set_buffers(socket, buffer_bytes);
    errno = 0;
    if (::connect(socket.get(), to.get(), to.length()) == 0) errno = 0;
  }
  return socket;
}

int connect_result(const Descriptor& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0 || !is_connected_to_itself(socket)) return error;
  // Reset instead of an orderly close, which would block the port for a minute.
  const linger at_once{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  return ECONNREFUSED;
}

Address local_address(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    throw_system("getsockname");
  }
  return {reinterpret_cast<const sockaddr*>(&storage), length};
}

std::string remote_host(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return "";
  return Address(reinterpret_cast<const sockaddr*>(&storage), length).host();
}

void set_low_latency(const Descriptor& socket) { set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

void set_keepalive(const Descriptor& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

bool is_unacknowledged(const Descriptor& socket) {
  constexpr int kAgainAndAgain = 2;  // one loss alone is common
  tcp_info info{};
  socklen_t length = sizeof info;
  return ::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
         info.tcpi_unacked > 0 && info.tcpi_retransmits >= kAgainAndAgain;
}

void set_buffers(const Descriptor& socket, int bytes) {
  if (bytes == 0) return;
  set_option(socket, SOL_SOCKET, SO_SNDBUF, bytes);
  set_option(socket, SOL_SOCKET, SO_RCVBUF, bytes);
}

// Reads again after an end, as receive() in unix_socket.cpp does: a unix socket may report its end
// before its last data.
Transfer receive_some(const Descriptor& socket, void* into, std::size_t bytes) {
  constexpr int kWaysToEnd = 2;
  const Transfer first = receive_once(socket, into, bytes);
  for (int way = 0; way < kWaysToEnd && first.is_closed; ++way) {
    const Transfer again = receive_once(socket, into, bytes);
    if (again.bytes > 0) return again;
  }
  return first;
}

Transfer send_some(const Descriptor& socket, const void* data, std::size_t bytes) {
  return outcome(::send(socket.get(), data, bytes, MSG_NOSIGNAL));
}

}  // namespace kolo::inline v0::posix
