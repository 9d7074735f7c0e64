#include "transports/plugin/plain.h"

#include <fmt/format.h>
#include <vector>

#include "transports/base/check.h"
#include "transports/plugin/status.h"

namespace kolo::inline v0::plugin {

namespace {

class PluggedPlainChannel final : public PlainChannel {
 public:
  PluggedPlainChannel(const Plugin& plugin, kolo_channel* channel, int rank)
      : table_(plugin.table), checker_(plugin, rank), channel_(channel) {}

  bool send(std::span<const std::byte> message) override {
    const bool is_taken =
        checker_.done(table_.send(channel_, message.data(), message.size(), checker_.error()));
    taken_ += is_taken ? 1 : 0;
    return is_taken;
  }

  std::uint64_t completed() override {
    std::uint64_t segments = completed_;
    checker_.done(table_.completed(channel_, &segments, checker_.error()));
    // A wrong count would release memory too early, or make a wait endless.
    if (segments < completed_ || segments > taken_) [[unlikely]]
      fail_as_miscounted(segments);
    return completed_ = segments;
  }

  bool receive(std::span<std::byte> into) override {
    return checker_.done(table_.receive(channel_, into.data(), into.size(), checker_.error()));
  }

 private:
  [[noreturn]] void fail_as_miscounted(std::uint64_t segments) const {
    checker_.fail_as_broken(fmt::format(
        "completed() returned {} messages, but {} were accepted, and {} returned before", segments,
        taken_, completed_));
  }

  const kolo_plugin& table_;
  StatusChecker checker_;
  kolo_channel* const channel_;
  std::uint64_t taken_ = 0;
  std::uint64_t completed_ = 0;
};

class PluggedPlainTransport final : public PlainTransport {
 public:
  PluggedPlainTransport(const Plugin& plugin, kolo_transport* transport, int rank, int size)
      : table_(plugin.table), checker_(plugin, rank), transport_(transport) {
    for (int peer = 0; peer < size; ++peer) {
      channels_.push_back(peer == rank ? nullptr
                                       : std::make_unique<PluggedPlainChannel>(
                                             plugin, channel_to(plugin, transport, peer), rank));
    }
  }

  PlainChannel& channel(int peer) override { return *channels_[static_cast<std::size_t>(peer)]; }
  void progress() override { checker_.done(table_.progress(transport_, checker_.error())); }
  void quiesce() noexcept override { table_.quiesce(transport_); }

  int descriptor() const override {
    return table_.descriptor == nullptr ? -1 : table_.descriptor(transport_);
  }
  bool arm() override {
    return table_.arm != nullptr && checker_.done(table_.arm(transport_, checker_.error()));
  }
  void disarm() override {
    if (table_.disarm != nullptr) table_.disarm(transport_);
  }

 private:
  const kolo_plugin& table_;
  StatusChecker checker_;
  kolo_transport* const transport_;
  std::vector<std::unique_ptr<PluggedPlainChannel>> channels_;
};

}  // namespace

std::unique_ptr<PlainTransport> make_plain(const Plugin& plugin, kolo_transport* transport,
                                           int rank, int size) {
  return std::make_unique<PluggedPlainTransport>(plugin, transport, rank, size);
}

}  // namespace kolo::inline v0::plugin
