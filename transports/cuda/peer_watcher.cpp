#include "transports/cuda/peer_watcher.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <utility>

#include "transports/posix/thread.h"
#include "transports/posix/unix_socket.h"

namespace kolo::inline v0::cuda {

namespace {

constexpr int kLookEveryMs = 10;

}  // namespace

PeerWatcher::PeerWatcher(std::vector<Peer> peers)
    : peers_(std::move(peers)), thread_(posix::start_thread("cuda_ipc", [this] { watch(); })) {}

// A socket that is shut down wakes the thread without one more descriptor.
PeerWatcher::~PeerWatcher() {
  is_stopped_.store(true, std::memory_order_release);
  for (const Peer& peer : peers_) ::shutdown(peer.socket, SHUT_RD);
  thread_.join();
}

void PeerWatcher::watch() {
  std::vector<pollfd> polled;
  for (const Peer& peer : peers_) polled.push_back({peer.socket, POLLIN, 0});
  bool has_any_closed = false;
  while (true) {
    ::poll(polled.data(), polled.size(), has_any_closed ? kLookEveryMs : -1);
    if (is_stopped_.load(std::memory_order_acquire)) return;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<std::byte, 8> notice{};
      const auto what = posix::receive_message(polled[i].fd, notice).what;
      has_any_closed |= what != posix::Received::kNothing;
      if (what != posix::Received::kClosed) continue;
      polled[i].fd = -1;
      peers_[i].channel->lose_peer();
    }
    if (has_any_closed) free_streams();
  }
}

// The other peers are told first: what freed streams send them may be wrong.
void PeerWatcher::free_streams() noexcept {
  for (const Peer& lost : peers_) {
    if (!lost.channel->is_hopeless()) continue;
    for (const Peer& other : peers_) other.channel->tell_of_loss(lost.channel->peer());
    lost.channel->break_off();
  }
}

}  // namespace kolo::inline v0::cuda
