#include "transports/shm/transport.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/base/transport_kind.h"
#include "transports/error.h"
#include "transports/posix/epoll.h"
#include "transports/posix/host/memory_barrier.h"
#include "transports/posix/unix_socket.h"
#include "transports/settings.h"
#include "transports/shm/channel.h"
#include "transports/shm/listener.h"

namespace kolo::inline v0 {

namespace {

using shm::ShmChannel;

// Interval of polling the sockets while a rank spins. Reading the clock costs as much as a few
// calls of progress(), so it is read only every kProgressPerClock calls.
constexpr auto kLookEvery = std::chrono::milliseconds(1);
constexpr unsigned kProgressPerClock = 64;

// Timeout of the destructor for connecting to peers whose listen queue is full, to send them what
// this rank has published.
constexpr auto kLastPatience = std::chrono::seconds(2);

class ShmTransport final : public Transport {
 public:
  ShmTransport(const TransportRequest& request, const shm::Layout& layout,
               const ShmSettings& settings)
      : rank_(request.rank),
        size_(request.size),
        listener_(request, layout, settings.has_remote_barriers, watch_) {
    links_.resize(static_cast<std::size_t>(size_));
    for (int peer = 0; peer < size_; ++peer) {
      if (!request.has_peer(peer)) continue;
      Link& link = link_to(peer);
      link.channel = std::make_unique<ShmChannel>(listener_.pair_with(peer), listener_, holding_,
                                                  *regions_, settings.single_copy_bytes);
      listener_.let(peer, *link.channel);
    }
  }

  ~ShmTransport() override {
    listener_.finish(Clock::now() + kLastPatience);
    quiesce();
  }

  std::string_view name() const override { return "shm"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size_ && link_to(peer).channel, "shm: no channel to this rank");
    return *link_to(peer).channel;
  }

  void progress() override {
    if (!holding_.empty()) flush();
    if (++calls_ % kProgressPerClock != 0 && !is_look_due_) return;
    const auto now = Clock::now();
    if (!is_look_due_ && now - looked_ < kLookEvery) return;
    looked_ = now;
    is_look_due_ = false;
    look_at_sockets();
  }

  int descriptor() const override { return watch_.descriptor(); }

  // If some call has returned "not now", only the events that such calls wait for are announced.
  // Otherwise all events are.
  bool arm() override {
    if (is_quiesced_) return false;
    flush();
    if (listener_.hurry()) {
      is_look_due_ = true;
      return false;
    }
    const bool wants_any = std::any_of(links_.begin(), links_.end(), [](const Link& link) {
      return link.channel && link.channel->wanted() != 0;
    });
    for (Link& link : links_) {
      const bool is_shared = link.channel && link.channel->has_region();
      link.events = !is_shared ? 0 : wants_any ? link.channel->wanted() : shm::kAnyEvent;
      if (link.events != 0) link.channel->announce_sleep(link.events);
    }
    posix::barrier_everywhere();
    bool is_new = false;
    for (Link& link : links_) is_new |= link.events != 0 && link.channel->has_news(link.events);
    if (is_new) end_sleep();
    return !is_new;
  }

  // The reason of the wake-up is unknown here: a wake-up byte, a peer's death, or an unrelated
  // event.
  void disarm() override {
    end_sleep();
    bool was_rung = false;
    for (Link& link : links_) {
      if (!link.is_rung) continue;
      was_rung = true;
      listen(link);
    }
    if (!was_rung) is_look_due_ = true;
  }

  bool shares_core_with_awaited_peer() override {
    unsigned core = 0;
    if (is_quiesced_ || ::getcpu(&core, nullptr) != 0) return false;
    bool is_shared = false;
    for (Link& link : links_) {
      if (link.channel && link.channel->has_region())
        is_shared |= link.channel->meets_awaited_peer_on(core);
    }
    return is_shared;
  }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return regions_->allocate(bytes);
  }

  void quiesce() noexcept override {
    is_quiesced_ = true;
    for (Link& link : links_) {
      if (link.channel) link.channel->close();
    }
    listener_.close();
  }

 private:
  struct Link {
    std::unique_ptr<ShmChannel> channel;
    std::uint64_t events = 0;  // announced
    bool is_rung = false;      // a wake-up byte of the peer has not been read yet
  };

  Link& link_to(int peer) { return links_[static_cast<std::size_t>(peer)]; }

  void flush() {
    for (ShmChannel* channel : holding_) channel->flush();
    holding_.clear();
  }

  void end_sleep() {
    for (Link& link : links_) {
      if (link.events != 0 && link.channel->end_sleep()) link.is_rung = true;
      link.events = 0;
    }
  }

  void look_at_sockets() {
    std::array<epoll_event, 16> events{};
    bool is_listener_due = listener_.is_busy();
    for (const epoll_event& event : watch_.wait(events, 0)) {
      if (event.data.u64 == static_cast<std::uint64_t>(size_)) {
        is_listener_due = true;
      } else {
        listen(link_to(static_cast<int>(event.data.u64)));
      }
    }
    if (is_listener_due) listener_.look();
  }

  void listen(Link& link) {
    link.is_rung = false;
    ShmChannel& channel = *link.channel;
    if (!channel.is_attached() && !channel.is_dead())
      return listener_.look();  // its answer is here
    bool has_heard = false;
    while (channel.has_socket()) {
      const auto heard = channel.hear();
      if (heard == posix::Received::kNothing && (has_heard || !channel.has_lost_own_socket()))
        return;
      if (heard != posix::Received::kMessage && !channel.is_dead()) channel.lose_peer();
      has_heard = true;
    }
  }

  const int rank_;
  const int size_;
  posix::Epoll watch_;
  shm::Listener listener_;
  const std::shared_ptr<shm::Regions> regions_ = std::make_shared<shm::Regions>();
  std::vector<ShmChannel*> holding_;
  std::vector<Link> links_;  // by peer
  unsigned calls_ = 0;
  bool is_look_due_ = false;
  bool is_quiesced_ = false;
  Clock::time_point looked_{};
};

std::unique_ptr<Transport> make(const TransportRequest& request) {
  ShmSettings settings;
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  settings.single_copy_bytes = read_settings().shm_single_copy_bytes;
  return make_shm(request, settings);
}

}  // namespace

std::unique_ptr<Transport> make_shm(const TransportRequest& request, const ShmSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size, "shm: a rank must be from 0 to size - 1");
  check(request.store != nullptr, "shm: a transport needs a store");
  check(settings.segment_bytes > 0 && settings.segment_bytes % kSegmentAlignment == 0,
        "shm: segment_bytes must be a multiple of kSegmentAlignment");
  const shm::Layout layout(std::min(settings.segment_bytes, shm::kLongestSegment));
  return std::make_unique<ShmTransport>(request, layout, settings);
}

TransportKind shm_transport() {
  TransportKind kind{"shm", Reach::kHost, posix::why_no_shared_memory, make};
  kind.can_leave_out = true;
  return kind;
}

}  // namespace kolo::inline v0
