// TCP sockets, non-blocking throughout: addresses of IPv4 and IPv6, listening, connecting.
#pragma once

#include <sys/socket.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

// An IPv4 or IPv6 address with a port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);

  // The same machine as far as the address tells: 127.0.0.0/8, ::1.
  bool is_loopback() const;

  // "10.0.0.1" or "fe80::1%eth0", without the port.
  std::string host() const;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

// "10.0.0.1:80", "[::1]:80", "node2:80".
std::string host_and_port(const std::string& host, std::uint16_t port);

// Addresses of a name or of a number; empty, with the resolver's text in `why`, where there are
// none.
std::vector<Address> resolve(const std::string& host, std::uint16_t port, std::string& why);

// Listens; `host` empty: on all addresses, IPv6 and IPv4 in one socket where the machine has both.
// Port 0: the kernel chooses. Error kUnavailable that names the port and whether it is in use.
Descriptor listen_on(const std::string& host, std::uint16_t port);

// The next connection, non-blocking; not open where there is none. Throws nothing: the caller looks
// at errno.
Descriptor accept_from(const Descriptor& listener);

// Starts to connect. errno as connect(2) says: EINPROGRESS or 0 is fine. Buffers as set_buffers()
// has them.
Descriptor start_connecting(const Address& to, int buffer_bytes = 0);

// After the socket became writable: 0, or the errno that the connection failed with. One to itself
// is ECONNREFUSED: nobody listens there. It holds the port until it is closed.
int connect_result(const Descriptor& socket);

Address local_address(const Descriptor& socket);

// No waiting for more to send (Nagle), and a probe of silent peers, so that a machine that vanished
// is noticed within some 30 s.
void set_low_latency(const Descriptor& socket);
void set_keepalive(const Descriptor& socket);

// The size of a socket's buffers, each way, as far as the kernel allows it; 0 leaves them to grow
// as needed. Before it connects: a window that shrinks later stalls. What a listener accepts has
// its.
void set_buffers(const Descriptor& socket, int bytes);

// The outcome of one non-blocking recv or send: bytes, or 0 for "not now"; `is_closed` where the
// peer is gone, with errno's number in `error` (0: an orderly end).
struct Transfer {
  std::size_t bytes = 0;
  bool is_closed = false;
  int error = 0;
};

Transfer receive_some(const Descriptor& socket, void* into, std::size_t bytes);
Transfer send_some(const Descriptor& socket, const void* data, std::size_t bytes);

}  // namespace kolo::posix
