#include "transports/decorators/shape.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "transports/base/check.h"
#include "transports/decorators/shaped_channel.h"
#include "transports/posix/epoll.h"
#include "transports/posix/timer.h"

namespace kolo::inline v0 {

namespace {

using decorators::ShapedChannel;
using decorators::TokenBucket;
using decorators::TransitTimes;

class ShapedTransport final : public Transport, private decorators::ShapingEvents {
 public:
  ShapedTransport(std::unique_ptr<Transport> inner, const Shape& shape,
                  ShapeSurroundings surroundings)
      : inner_(std::move(inner)),
        name_(fmt::format("{},{}", inner_->name(), shape.text)),
        now_(std::move(surroundings.now)),
        out_wire_(shape.all.bytes_per_second, shape.all.burst_bytes),
        in_wire_(shape.all.bytes_per_second, shape.all.burst_bytes) {
    for (int peer = 0; peer < inner_->size(); ++peer)
      channels_.push_back(peer == inner_->rank() ? nullptr : make(peer, shape, surroundings));
    if (inner_->descriptor() < 0) return;
    sleep_.emplace();
    sleep_->set.add(inner_->descriptor(), EPOLLIN, 0);
    sleep_->set.add(sleep_->timer.descriptor(), EPOLLIN, 1);
  }

  std::string_view name() const override { return name_; }
  std::string_view name_to(int peer) const override {
    const std::string_view below = inner_->name_to(peer);
    return below == inner_->name() ? name_ : below;
  }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  Channel& channel(int peer) override {
    Channel& below = inner_->channel(peer);
    const auto& shaped = channels_[static_cast<std::size_t>(peer)];
    return shaped ? *shaped : below;
  }

  void progress() override {
    inner_->progress();
    for (const auto& channel : channels_) {
      if (channel) channel->progress();
    }
    admit_due();
  }

  int descriptor() const override { return sleep_ ? sleep_->set.descriptor() : -1; }

  bool arm() override {
    if (!sleep_) return false;
    admit_due();
    const auto now = now_();
    while (!wakes_.empty() && wakes_.top() <= now) {
      wakes_.pop();
      has_news_ = true;
    }
    if (std::exchange(has_news_, false)) return false;
    set_timer();
    return inner_->arm();
  }

  void disarm() override { inner_->disarm(); }
  bool shares_core_with_awaited_peer() override { return inner_->shares_core_with_awaited_peer(); }

  void quiesce() noexcept override {
    inner_->quiesce();
    for (const auto& channel : channels_) {
      if (channel) channel->quiesce();
    }
  }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return inner_->allocate(bytes);
  }
  std::string carrier() const override { return inner_->carrier(); }

 private:
  struct Coming {
    TransitTimes at;
    std::uint64_t number;  // in order of arrival
    ShapedChannel* channel;

    bool operator>(const Coming& other) const {
      return std::pair(at.last, number) > std::pair(other.at.last, other.number);
    }
  };
  struct Sleep {
    posix::Timer timer;
    posix::Epoll set;
  };
  template <typename Value>
  using Earliest = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

  std::unique_ptr<ShapedChannel> make(int peer, const Shape& shape,
                                      const ShapeSurroundings& surroundings) {
    decorators::ShapedChannelSetup setup;
    setup.rank = rank();
    setup.out = shape.path(rank(), peer, surroundings.hosts);
    setup.in = shape.path(peer, rank(), surroundings.hosts);
    if (!setup.out.is_shaped && !setup.in.is_shaped) return nullptr;
    setup.seed = shape.seed;
    const auto& clocks = surroundings.has_same_clock;
    setup.has_same_clock = clocks.empty() || clocks[static_cast<std::size_t>(peer)];
    if (setup.out.is_shaped && !setup.out.is_own_wire) setup.out_wire = &out_wire_;
    if (setup.in.is_shaped && !setup.in.is_own_wire) setup.in_wire = &in_wire_;
    Channel& below = inner_->channel(peer);
    // All ranks must use the same segment lengths, which they do if all channels are shaped alike.
    const bool is_even = shape.overrides.empty() && !shape.is_between_hosts_only;
    if (is_even) setup.longest_segment_bytes = surroundings.longest_segment_bytes;
    ShapingEvents& agenda = *this;
    return std::make_unique<ShapedChannel>(below, setup, pool_, agenda);
  }

  Clock::time_point now() override { return now_(); }

  // A rank that is awake has handled past times already, so they are removed.
  void wake_at(Clock::time_point time) override {
    const auto now = now_();
    while (!wakes_.empty() && wakes_.top() <= now) {
      wakes_.pop();
      has_news_ = true;
    }
    wakes_.push(time);
  }

  void comes(ShapedChannel& channel, TransitTimes at) override {
    coming_.push({at, coming_number_++, &channel});
  }

  // Segments pass this rank's incoming wire in the order of their arrival, across all channels.
  void admit_due() override {
    if (coming_.empty()) return;
    const auto now = now_();
    while (!coming_.empty() && coming_.top().at.last <= now) {
      const auto due = coming_.top().channel->admit();
      coming_.pop();
      has_news_ = true;
      if (due > now) wake_at(due);
    }
  }

  void set_timer() {
    std::optional<Clock::time_point> next;
    if (!wakes_.empty()) next = wakes_.top();
    if (!coming_.empty())
      next = std::min(next.value_or(coming_.top().at.last), coming_.top().at.last);
    if (next) {
      sleep_->timer.set(*next);
    } else {
      sleep_->timer.clear();
    }
  }

  std::unique_ptr<Transport> inner_;
  const std::string name_;
  const std::function<Clock::time_point()> now_;
  TokenBucket out_wire_;
  TokenBucket in_wire_;
  decorators::SegmentPool pool_;
  std::vector<std::unique_ptr<ShapedChannel>> channels_;
  std::optional<Sleep> sleep_;  // none if the transport below has no descriptor to sleep on

  Earliest<Coming> coming_;
  std::uint64_t coming_number_ = 0;
  Earliest<Clock::time_point> wakes_;
  bool has_news_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_shaped(std::unique_ptr<Transport> inner, const Shape& shape,
                                       ShapeSurroundings surroundings) {
  check(inner != nullptr, "make_shaped: there must be a transport to shape");
  check_shape(shape, inner->size());
  return std::make_unique<ShapedTransport>(std::move(inner), shape, std::move(surroundings));
}

}  // namespace kolo::inline v0
