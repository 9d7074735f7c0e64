// Unix sockets in the abstract namespace: they carry whole messages and descriptors between
// processes of one host, and leave nothing in the file system.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "transports/posix/descriptor.h"

namespace kolo::posix {

// Listens under a name that the kernel chose, free by construction.
class UnixListener {
 public:
  explicit UnixListener(int backlog);

  // The name to connect to; printable.
  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_.get(); }

  // The next connection, non-blocking; nothing while nobody waits.
  std::optional<Descriptor> accept();

  // From now on nobody can connect; who waits already can be accepted.
  void refuse_others() noexcept;

 private:
  Descriptor descriptor_;
  std::string name_;
};

// Connects without blocking; nothing while the listener's queue is full: try again. Error kPeerLost
// where nobody listens.
std::optional<Descriptor> connect_unix(const std::string& name);

// Sends one message, with a descriptor unless `passed` is -1. False where it cannot be sent now or
// ever; never blocks, raises no SIGPIPE.
bool send_message(int socket, std::span<const std::byte> message, int passed = -1) noexcept;

enum class Received { kNothing, kMessage, kClosed };

struct Message {
  Received what = Received::kNothing;
  std::size_t bytes = 0;  // of the message, cut to the room there was
  Descriptor passed;      // the descriptor that came with it, if any
};

// The next message, if there is one. kClosed: the peer has hung up or died, and nothing that it
// said is left.
Message receive_message(int socket, std::span<std::byte> into);

// The same, and leaves it there, with the descriptor that came along.
Message peek_message(int socket, std::span<std::byte> into);

// Whether this process can open so many descriptors more, beside one that it has. The kernel drops
// those that come along with a message and find no room, without a word.
bool has_room_beside(int descriptor, int count = 1) noexcept;

// Process id at the other end.
int peer_process(int socket);

}  // namespace kolo::posix
