#include "transports/posix/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/error.h"

namespace kolo::inline v0::posix {

namespace {

constexpr int kKind = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

Descriptor make_socket() {
  Descriptor socket = Descriptor::not_inherited(::socket(AF_UNIX, kKind, 0));
  if (!socket.is_open()) throw_system("making a unix socket");
  return socket;
}

// Room for one descriptor in a control message.
union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr alignment;
};

enum class Take { kAll, kNothing };

Message receive_once(int socket, std::span<std::byte> into, Take take) {
  iovec piece{into.data(), into.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (take == Take::kAll) {
    header.msg_control = control.bytes.data();
    header.msg_controllen =
        CMSG_LEN(sizeof(int));  // CMSG_SPACE's padding would let in a second one
  }
  const int flags = take == Take::kAll ? MSG_CMSG_CLOEXEC : MSG_PEEK;
  const auto got = ::recvmsg(socket, &header, MSG_DONTWAIT | flags);
  Message message;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return message;
  if (got <= 0) {
    message.what = Received::kClosed;
    return message;
  }
  message.what = Received::kMessage;
  message.bytes = static_cast<std::size_t>(got);
  const cmsghdr* item = CMSG_FIRSTHDR(&header);
  if (item != nullptr && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS) {
    int passed = -1;
    std::memcpy(&passed, CMSG_DATA(item), sizeof passed);
    message.passed = Descriptor(passed);
  }
  return message;
}

// The kernel may report an end while the last messages are still queued. It checks the queue before
// it checks for the end, and reports a reset (once) before it checks the queue. One more receive
// for each of these two cases gets all messages.
Message receive(int socket, std::span<std::byte> into, Take take) {
  constexpr int kWaysToEnd = 2;
  Message message = receive_once(socket, into, take);
  for (int way = 0; way < kWaysToEnd && message.what == Received::kClosed; ++way)
    message = receive_once(socket, into, take);
  return message;
}

}  // namespace

UnixListener::UnixListener(int backlog, std::string_view name) : descriptor_(make_socket()) {
  // Abstract names begin with a zero byte. bind() with only the family asks for a free one.
  constexpr std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const std::size_t bytes = name.empty() ? sizeof address.sun_family : before + name.size();
  if (::bind(descriptor_.get(), generic, static_cast<socklen_t>(bytes)) != 0)
    throw_system("binding a unix socket");
  socklen_t length = sizeof address;
  if (::getsockname(descriptor_.get(), generic, &length) != 0) throw_system("naming a unix socket");
  name_.assign(address.sun_path + 1, length - before);
  if (::listen(descriptor_.get(), backlog) != 0) throw_system("listening on a unix socket");
}

std::optional<Descriptor> UnixListener::accept() {
  Descriptor socket = Descriptor::not_inherited(
      ::accept4(descriptor_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.is_open()) return socket;
  if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
    throw_system("accepting on a unix socket");
  return std::nullopt;
}

void UnixListener::refuse_others() noexcept { ::shutdown(descriptor_.get(), SHUT_RD); }

std::optional<Descriptor> connect_unix(const std::string& name) {
  Descriptor socket = make_socket();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), bytes) == 0) return socket;
  if (errno == EAGAIN || errno == EINTR) return std::nullopt;
  if (errno == ECONNREFUSED) {
    throw Error(ErrorCode::kPeerLost, kNoPeer,
                "no process listens on unix socket @" + name + " any more");
  }
  throw_system("connecting to unix socket @" + name);
}

bool send_message(int socket, std::span<const std::byte> message, int passed) noexcept {
  iovec piece{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  Control control{};
  if (passed >= 0) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(item), &passed, sizeof passed);
  }
  return ::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

Message receive_message(int socket, std::span<std::byte> into) {
  return receive(socket, into, Take::kAll);
}

Message peek_message(int socket, std::span<std::byte> into) {
  return receive(socket, into, Take::kNothing);
}

bool has_room_beside(int descriptor, int count) noexcept {
  const Descriptor one(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  return one.is_open() && (count == 1 || has_room_beside(descriptor, count - 1));
}

int peer_process(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return -1;
  return who.pid;
}

}  // namespace kolo::inline v0::posix
