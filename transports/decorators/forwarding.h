// Decorator that changes nothing: the base class of fault and trace, which override a few calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/base/preposted_receives.h"
#include "transports/transport.h"

namespace kolo::inline v0::decorators {

class ForwardingChannel : public Channel {
 public:
  explicit ForwardingChannel(Channel& inner) : inner_(inner) {}

  int peer() const override { return inner_.peer(); }
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  const ChannelStatistics& statistics() const override { return inner_.statistics(); }
  bool is_connected() const override { return inner_.is_connected(); }
  std::string why_unconnected() const override { return inner_.why_unconnected(); }
  std::string under_way() const override { return inner_.under_way(); }
  std::string remote_address() const override { return inner_.remote_address(); }
  std::byte* reserve(std::size_t bytes) override { return inner_.reserve(bytes); }
  void commit(unsigned flags) override { inner_.commit(flags); }
  bool send(std::span<const std::byte> data, unsigned flags) override {
    return inner_.send(data, flags);
  }
  bool is_drained() override { return inner_.is_drained(); }
  const std::byte* view(std::size_t bytes) override { return inner_.view(bytes); }
  void release() override { inner_.release(); }
  bool receive(std::span<std::byte> into, unsigned flags) override {
    return inner_.receive(into, flags);
  }
  std::byte* view_to_answer(std::size_t bytes) override { return inner_.view_to_answer(bytes); }
  void answer() override { inner_.answer(); }
  const std::byte* view_answer(std::size_t bytes) override { return inner_.view_answer(bytes); }
  void release_answer() override { inner_.release_answer(); }
  StreamChannel* stream() override { return inner_.stream(); }
  std::string why_no_stream() const override { return inner_.why_no_stream(); }

 protected:
  Channel& inner() { return inner_; }

 private:
  Channel& inner_;
};

// DecoratedChannel with preposted receives, for a channel below that supports them. The decorated
// channel needs may_expect(): it returns false to refuse now, and throws as receive() would.
template <typename DecoratedChannel>
class ForwardedPrepostedReceives final : public DecoratedChannel, public PrepostedReceives {
 public:
  template <typename... Arguments>
  explicit ForwardedPrepostedReceives(Channel& inner, PrepostedReceives& expecting,
                                      Arguments&... arguments)
      : DecoratedChannel(inner, arguments...), expecting_(expecting) {}

  std::size_t expected_segments() const override { return expecting_.expected_segments(); }
  bool expect(std::size_t ahead, std::span<std::byte> into) override {
    return this->may_expect() && expecting_.expect(ahead, into);
  }

 private:
  PrepostedReceives& expecting_;
};

// Forwards to a transport and wraps its channels in `DecoratedChannel`s, made by add_channels().
template <typename DecoratedChannel>
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner)
      : inner_(std::move(inner)), channels_(static_cast<std::size_t>(inner_->size())) {}

  std::string_view name() const override { return inner_->name(); }
  std::string_view name_to(int peer) const override { return inner_->name_to(peer); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  Channel& channel(int peer) override {
    Channel& below = inner_->channel(peer);  // also checks `peer`
    const auto& channel = channels_[static_cast<std::size_t>(peer)];
    return channel ? *channel : below;
  }

  void progress() override { inner_->progress(); }
  int descriptor() const override { return inner_->descriptor(); }
  bool arm() override { return inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  bool shares_core_with_awaited_peer() override { return inner_->shares_core_with_awaited_peer(); }
  void quiesce() noexcept override { inner_->quiesce(); }
  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return inner_->allocate(bytes);
  }
  std::string carrier() const override { return inner_->carrier(); }

 protected:
  // Makes a channel for every peer from the channel below and `arguments`.
  template <typename... Arguments>
  void add_channels(Arguments&... arguments) {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      Channel& below = inner_->channel(peer);
      auto& channel = channels_[static_cast<std::size_t>(peer)];
      if constexpr (requires(DecoratedChannel & one) { one.may_expect(); }) {
        if (auto* const wants = dynamic_cast<PrepostedReceives*>(&below))
          channel = std::make_unique<ForwardedPrepostedReceives<DecoratedChannel>>(below, *wants,
                                                                                   arguments...);
      }
      if (!channel) channel = std::make_unique<DecoratedChannel>(below, arguments...);
    }
  }

  // Also valid after quiesce(); null for this rank itself.
  DecoratedChannel* decorated(int peer) { return channels_[static_cast<std::size_t>(peer)].get(); }

 private:
  std::unique_ptr<Transport> inner_;
  std::vector<std::unique_ptr<DecoratedChannel>> channels_;
};

}  // namespace kolo::inline v0::decorators
