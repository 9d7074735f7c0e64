// TCP sockets, all non-blocking: IPv4 and IPv6 addresses, listening, connecting.
#pragma once

#include <sys/socket.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

// IPv4 or IPv6 address with a port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);

  // Whether the address is 127.0.0.0/8 or ::1, so on this machine.
  bool is_loopback() const;

  // "10.0.0.1" or "fe80::1%eth0", without the port.
  std::string host() const;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// "10.0.0.1:80", "[::1]:80", "node2:80".
std::string host_and_port(const std::string& host, std::uint16_t port);

// Addresses of a host name or a numeric address. If there are none: empty, with the resolver's text
// in `why`. The system's resolver may take longer than any deadline, so with one it runs in a
// thread of its own, which is left behind if the deadline comes first.
std::vector<Address> resolve(const std::string& host, std::uint16_t port, std::string& why,
                             std::optional<std::chrono::steady_clock::time_point> deadline = {});

// Whether the text is "localhost" or a loopback address in numbers, so this host on every host.
bool is_loopback_only(const std::string& host);

// Listening socket. Empty `host`: all addresses, with IPv6 and IPv4 in one socket if the machine
// has both. Port 0: the kernel chooses. Error kUnavailable names the port and says whether it is in
// use.
Descriptor listen_on(const std::string& host, std::uint16_t port);

// Accepts the next connection, non-blocking. Not open if there is none: see errno. Throws nothing.
Descriptor accept_from(const Descriptor& listener);

// Starts to connect. errno as connect(2) sets it: EINPROGRESS or 0 is success. `buffer_bytes` as in
// set_buffers().
Descriptor start_connecting(const Address& to, int buffer_bytes = 0);

// Call once the socket is writable: 0, or the errno of the failed connection. A connection to
// itself gives ECONNREFUSED, since there is no listener. It blocks the port until it is closed.
int connect_result(const Descriptor& socket);

// Text of the errno of a failed connection; tells a lack of free ports.
std::string connect_error_text(int number);

Address local_address(const Descriptor& socket);
// The host() of the peer's address; empty: the socket is not connected.
std::string remote_host(const Descriptor& socket);

// TCP_NODELAY (no Nagle algorithm); and keepalive probes, which detect a vanished machine within
// about 30 s.
void set_low_latency(const Descriptor& socket);
void set_keepalive(const Descriptor& socket);

// True if the kernel has retransmitted data repeatedly without an acknowledgement from the peer's
// host. False for a slow or stopped peer: its kernel still acknowledges.
bool is_unacknowledged(const Descriptor& socket);

// Sets both buffers of a socket, as far as the kernel allows; 0 keeps autotuning. Call it before
// connecting: a window that shrinks later stalls. Accepted sockets inherit the listener's sizes.
void set_buffers(const Descriptor& socket, int bytes);

// Result of one non-blocking recv or send. 0 bytes means "not now". `is_closed` means that the peer
// is gone; `error` is then the errno, 0 for an orderly end.
struct Transfer {
  std::size_t bytes = 0;
  bool is_closed = false;
  int error = 0;
};

Transfer receive_some(const Descriptor& socket, void* into, std::size_t bytes);
Transfer send_some(const Descriptor& socket, const void* data, std::size_t bytes);

}  // namespace kolo::inline v0::posix
