// The sockets on which a process listens, and unknown clients that find them, as a port scanner
// does.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transports/posix/descriptor.h"

namespace kolo::test {

struct ListeningSocket {
  int kind = SOCK_STREAM;
  sockaddr_storage address{};
  socklen_t length = sizeof address;

  bool is_unix() const { return address.ss_family == AF_UNIX; }
};

// All open descriptors, to tell new ones from old ones.
inline std::set<int> open_descriptors() {
  std::set<int> all;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    all.insert(std::stoi(each.path().filename()));
  return all;
}

// Sockets of this process opened since `before` that listen, or that receive datagrams under a
// name.
inline std::vector<ListeningSocket> listening_since(const std::set<int>& before) {
  std::vector<ListeningSocket> found;
  for (const int descriptor : open_descriptors()) {
    if (before.count(descriptor) > 0) continue;
    int listens = 0;
    ListeningSocket one;
    socklen_t length = sizeof listens;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0) continue;
    ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &one.kind, &length);
    ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&one.address), &one.length);
    const bool has_name = one.length > sizeof one.address.ss_family;
    if (listens == 0 && !(one.kind == SOCK_DGRAM && has_name)) continue;
    found.push_back(one);
  }
  return found;
}

// Connects and sends `speech`; the connection lives as long as the returned socket. Nothing blocks:
// data that does not fit is dropped, and a refused connection is not retried.
inline posix::Descriptor speak_to(const ListeningSocket& listener, std::string_view speech) {
  // a full queue blocks; the kernel completes TCP's connections
  const int waits = listener.is_unix() ? SOCK_NONBLOCK : 0;
  posix::Descriptor socket(
      ::socket(listener.address.ss_family, listener.kind | waits | SOCK_CLOEXEC, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&listener.address);
  if (::connect(socket.get(), address, listener.length) != 0) return socket;
  static_cast<void>(
      ::send(socket.get(), speech.data(), speech.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  return socket;
}

}  // namespace kolo::test
