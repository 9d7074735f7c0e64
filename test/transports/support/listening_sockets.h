// The sockets on which a process listens, and strangers who find them: whoever has a port scanner
// may speak to each.
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

// By descriptor, so that what is new is told from what was there before.
inline std::set<int> open_descriptors() {
  std::set<int> all;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    all.insert(std::stoi(each.path().filename()));
  return all;
}

// Those of this process that were opened since `before`: they listen, or take datagrams under a
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

// Connects, says `speech`, and stays as long as what is returned. Nothing waits: what does not fit
// is left out, who is not let in is left alone.
inline posix::Descriptor speak_to(const ListeningSocket& door, std::string_view speech) {
  const int waits = door.is_unix() ? SOCK_NONBLOCK : 0;  // a full queue; TCP's is the kernel's
  posix::Descriptor socket(::socket(door.address.ss_family, door.kind | waits | SOCK_CLOEXEC, 0));
  const auto* const address = reinterpret_cast<const sockaddr*>(&door.address);
  if (::connect(socket.get(), address, door.length) != 0) return socket;
  static_cast<void>(
      ::send(socket.get(), speech.data(), speech.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  return socket;
}

}  // namespace kolo::test
