#include "transports/posix/pending_connections.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transports/error.h"

namespace kolo::inline v0::posix {

namespace {

// Polls because accept() fails in the same way, with or without a connection, once no descriptor is
// left.
bool is_somebody_at(const UnixListener& listener) {
  pollfd watched{listener.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

}  // namespace

PendingConnections::PendingConnections(Handlers house, std::size_t expected,
                                       std::chrono::steady_clock::duration patience)
    : handlers_(std::move(house)), most_(kMostUnknownClients + expected), patience_(patience) {}

void PendingConnections::look(UnixListener& listener) {
  hear_all();
  accept_from(listener);
}

// Reads from each connection at once: most have sent their hello by now and do not count as silent.
void PendingConnections::accept_from(UnixListener& listener) {
  why_kept_out_.clear();
  for (std::size_t accepted = 0; accepted < kMostAccepted; ++accepted) {
    PendingConnection caller{accept(listener), std::chrono::steady_clock::now() + patience_, false};
    if (!caller.socket.is_open()) break;
    hear(caller);
    if (caller.socket.is_open()) keep(std::move(caller));
  }
  make_room();
}

void PendingConnections::keep(PendingConnection caller) {
  if (handlers_.watch) handlers_.watch(caller.socket.get());
  waiting_.push_back(std::move(caller));
  if (waiting_.size() > most_ && !drop_oldest_silent()) waiting_.pop_front();
}

// Not open if no connection waits, or if no descriptor is left for it.
Descriptor PendingConnections::accept(UnixListener& listener) {
  while (true) {
    try {
      auto socket = listener.accept();
      has_left_some_ = socket.has_value();
      return socket ? std::move(*socket) : Descriptor();
    } catch (const Error& error) {
      has_left_some_ = is_somebody_at(listener);
      if (has_left_some_ && drop_oldest_silent()) continue;
      if (has_left_some_) why_kept_out_ = error.what();
      return {};
    }
  }
}

void PendingConnections::make_room() {
  if (lacks_room_) hear_all();  // other connections may have closed since
  while (lacks_room_ && drop_oldest_silent()) hear_all();
  if (lacks_room_) why_kept_out_ = error_text(EMFILE);
}

void PendingConnections::hear_all() {
  lacks_room_ = false;
  const auto now = std::chrono::steady_clock::now();
  for (PendingConnection& caller : waiting_) {
    if (caller.socket.is_open()) hear(caller);
    if (!caller.has_said_hello && now > caller.patience_ends) caller.socket.close();
  }
  forget_done();
}

bool PendingConnections::drop_oldest_silent() {
  bool has_dropped = false;
  for (PendingConnection& caller : waiting_) {
    if (caller.has_said_hello || !caller.socket.is_open()) continue;
    hear(caller);
    if (caller.has_said_hello) continue;
    caller.socket.close();
    has_dropped = true;
    break;
  }
  forget_done();
  return has_dropped;
}

// Peeks first, without taking the descriptor: an unknown client's message needs no room for one.
void PendingConnections::hear(PendingConnection& caller) {
  std::array<std::byte, kLongestHello + 1> room{};  // one more: longer messages are not a hello
  const auto said = std::span(room).first(handlers_.hello_bytes);
  if (!caller.has_said_hello) {
    const Message seen = peek_message(caller.socket.get(), std::span(room).first(said.size() + 1));
    if (seen.what == Received::kNothing) return;
    caller.has_said_hello =
        seen.what == Received::kMessage && seen.bytes == said.size() && handlers_.is_hello(said);
    if (!caller.has_said_hello) return caller.socket.close();
  }
  if (!has_room_beside(caller.socket.get(), handlers_.descriptors)) {
    lacks_room_ = true;
    return;
  }
  Message message = receive_message(caller.socket.get(), said);
  handlers_.let_in(said, std::exchange(caller.socket, {}), std::move(message.passed));
}

void PendingConnections::forget_done() {
  std::erase_if(waiting_, [](const PendingConnection& caller) { return !caller.socket.is_open(); });
}

}  // namespace kolo::inline v0::posix
