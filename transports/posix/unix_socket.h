// Unix sockets in the abstract namespace: whole messages and descriptors between processes of one
// host. They leave no files behind.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::posix {

// Listener under an abstract name. Without a name the kernel chooses a free one, which a listener
// in another network namespace may have as well.
class UnixListener {
 public:
  explicit UnixListener(int backlog, std::string_view name = {});

  // Name to connect to; printable.
  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_.get(); }

  // Accepts the next connection, non-blocking; nothing if none waits.
  std::optional<Descriptor> accept();

  // Refuses new connections from now on. Those already in the queue can still be accepted.
  void refuse_others() noexcept;

 private:
  Descriptor descriptor_;
  std::string name_;
};

// Connects without blocking; nothing while the listener's queue is full: retry. Error kPeerLost if
// there is no listener.
std::optional<Descriptor> connect_unix(const std::string& name);

// Sends one message, with a descriptor unless `passed` is -1. False if it cannot be sent, now or
// ever. Never blocks, raises no SIGPIPE.
bool send_message(int socket, std::span<const std::byte> message, int passed = -1) noexcept;

enum class Received { kNothing, kMessage, kClosed };

struct Message {
  Received what = Received::kNothing;
  std::size_t bytes = 0;  // of the message, cut to the size of the buffer
  Descriptor passed;      // the descriptor that came with it, if any
};

// The next message, if there is one. kClosed: the peer has closed or died, and all its messages
// have been received.
Message receive_message(int socket, std::span<std::byte> into);

// Same as receive_message(), but leaves the message and its descriptor in the queue.
Message peek_message(int socket, std::span<std::byte> into);

// Whether this process can open `count` more descriptors; `descriptor` is any open one. Test this
// before receiving: without room the kernel silently drops the descriptor of a message.
bool has_room_beside(int descriptor, int count = 1) noexcept;

// Process id at the other end.
int peer_process(int socket);

}  // namespace kolo::inline v0::posix
