#include "transports/cuda/transport.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/base/transport_kind.h"
#include "transports/cuda/bootstrap.h"
#include "transports/cuda/chosen_device.h"
#include "transports/cuda/library.h"
#include "transports/cuda/peer_access.h"
#include "transports/cuda/peer_watcher.h"
#include "transports/cuda/shutdown.h"
#include "transports/cuda/slot_count.h"
#include "transports/cuda/stream_channel.h"
#include "transports/decorators/forwarding.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/unix_socket.h"

namespace kolo::inline v0 {

namespace {

using cuda::DeviceChannel;
using cuda::IpcExports;

constexpr unsigned kProgressPerLook = 64;

class CudaChannel final : public decorators::ForwardingChannel {
 public:
  CudaChannel(Channel& host, const cuda::Device& device, const cuda::RankResources& rank,
              const cuda::Link& link)
      : ForwardingChannel(host), stream_(device, rank, link) {}

  const ChannelStatistics& statistics() const override {
    statistics_ = ForwardingChannel::statistics();
    const ChannelStatistics& more = stream_.statistics();
    statistics_.bytes_sent += more.bytes_sent;
    statistics_.bytes_received += more.bytes_received;
    statistics_.segments_sent += more.segments_sent;
    statistics_.segments_received += more.segments_received;
    return statistics_;
  }

  StreamChannel* stream() override { return &stream_; }
  DeviceChannel& device_channel() { return stream_; }

 private:
  DeviceChannel stream_;
  mutable ChannelStatistics statistics_;
};

// Objects that streams use; they may outlive the transport.
struct InUse final : cuda::KeptUntilExit {
  explicit InUse(std::unique_ptr<cuda::BootstrapResult> all)
      : met(std::move(all)), exports(*met->device), backlog(*met->device), writes(*met->device) {}

  std::unique_ptr<cuda::BootstrapResult> met;
  IpcExports exports;
  cuda::Backlog backlog;
  cuda::PendingWrites writes;
  std::vector<std::unique_ptr<CudaChannel>> channels;
};

class CudaTransport final : public Transport {
 public:
  CudaTransport(std::unique_ptr<Transport> host, std::unique_ptr<cuda::BootstrapResult> met,
                std::chrono::milliseconds patience)
      : patience_(patience),
        host_(std::move(host)),
        in_use_(std::make_unique<InUse>(std::move(met))),
        met_(*in_use_->met),
        channels_(in_use_->channels) {
    const cuda::RankResources shared{in_use_->exports, in_use_->backlog, in_use_->writes};
    for (int peer = 0; peer < size(); ++peer) {
      channels_.push_back(peer == rank()
                              ? nullptr
                              : std::make_unique<CudaChannel>(host_->channel(peer), *met_.device,
                                                              shared, link(peer)));
    }
    if (size() > 1) watcher_.emplace(watched());
  }

  ~CudaTransport() override {
    quiesce();
    if (is_captured()) end_replays();
    if (is_stuck_) cuda::keep(std::move(in_use_));
  }

  std::string_view name() const override { return "cuda_ipc"; }
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size() && peer != rank(), "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    host_->progress();
    if (++calls_ % kProgressPerLook == 0) look_after_peers();
  }

  int descriptor() const override { return host_->descriptor(); }

  // Announcements and words send no notification, so a caller that waits for them must not sleep.
  bool arm() override {
    look_after_peers();
    bool is_waiting = false;
    for (const auto& channel : channels_)
      is_waiting |= channel && channel->device_channel().take_not_now();
    return !is_waiting && host_->arm();
  }
  void disarm() override { host_->disarm(); }
  bool shares_core_with_awaited_peer() override { return host_->shares_core_with_awaited_peer(); }

  std::shared_ptr<std::byte[]> allocate(std::size_t bytes) override {
    return host_->allocate(bytes);
  }

  // The host transport closes last, since its end tells the peers. Memory that a replay may use
  // stays mapped until the transport is destroyed, since a replay may start at any time.
  void quiesce() noexcept override {
    if (std::exchange(is_quiesced_, true)) return;
    const bool is_all_done = std::ranges::all_of(
        channels_, [](auto& channel) { return !channel || channel->device_channel().is_done(); });
    for (const auto& channel : channels_) {
      if (channel) channel->device_channel().close(is_all_done);
    }
    wake_watchers();
    const bool is_idle = cuda::wait_for_end(patience_, [this] {
      bool has_finished = true;
      for (const auto& channel : channels_) {
        if (!channel) continue;
        channel->device_channel().free_streams();
        has_finished &= channel->device_channel().has_finished();
      }
      return has_finished && has_replayed();
    });
    is_stuck_ = !is_idle;
    const bool is_over = is_idle && !is_captured();
    if (is_over) unmap();
    host_->quiesce();
    met_.free_slots = is_over && cuda::wait_for_end(patience_, [this] { return are_peers_gone(); });
  }

 private:
  bool is_captured() const {
    return std::ranges::any_of(channels_, [](auto& channel) {
      return channel && channel->device_channel().is_captured();
    });
  }
  bool has_replayed() const {
    return std::ranges::all_of(channels_, [](auto& channel) {
      return !channel || channel->device_channel().has_replayed();
    });
  }

  void unmap() noexcept {
    for (const auto& channel : channels_) {
      if (channel) channel->device_channel().unmap();
    }
  }

  bool are_peers_gone() const {
    return std::ranges::all_of(channels_, [](auto& channel) {
      return !channel || channel->device_channel().is_peer_gone();
    });
  }

  // Ends captured work: no replay may start from here on.
  void end_replays() noexcept {
    is_stuck_ |= !cuda::wait_for_end(patience_, [this] { return has_replayed(); });
    if (!is_stuck_) unmap();
    met_.free_slots =
        !is_stuck_ && cuda::wait_for_end(patience_, [this] { return are_peers_gone(); });
  }

  const cuda::Link& link(int peer) const { return met_.peers[static_cast<std::size_t>(peer)].link; }

  void look_after_peers() {
    if (is_quiesced_) return;
    met_.device->frees().run_all();
    for (const auto& channel : channels_) {
      if (channel) channel->device_channel().look_after_peer();
    }
  }

  std::vector<cuda::PeerWatcher::Peer> watched() const {
    std::vector<cuda::PeerWatcher::Peer> peers;
    for (std::size_t peer = 0; peer < channels_.size(); ++peer) {
      if (channels_[peer])
        peers.push_back({met_.peers[peer].accepted.get(), &channels_[peer]->device_channel()});
    }
    return peers;
  }

  // The peers' watchers see the end of this transport in the shared words, once they look.
  void wake_watchers() const noexcept {
    constexpr std::array<std::byte, 1> kNotice{};
    for (const auto& peer : met_.peers) {
      if (peer.called.is_open()) posix::send_message(peer.called.get(), kNotice);
    }
  }

  const std::chrono::milliseconds patience_;
  std::unique_ptr<Transport> host_;
  std::unique_ptr<InUse> in_use_;
  cuda::BootstrapResult& met_;
  std::vector<std::unique_ptr<CudaChannel>>& channels_;
  unsigned calls_ = 0;
  bool is_quiesced_ = false;
  bool is_stuck_ = false;
  std::optional<cuda::PeerWatcher> watcher_;  // ends before all that it watches
};

std::string why_no_driver() { return cuda::why_unusable(*cuda::installed_driver()); }

std::unique_ptr<Transport> make(const TransportRequest& request) {
  CudaIpcSettings settings;
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  if (request.device) {
    settings.device = request.device->number;
    settings.driver = request.device->driver;
    settings.process = request.device->process;
  }
  settings.make_host = [](const TransportRequest& beneath) {
    return make_beneath("cuda_ipc", beneath);
  };
  return make_cuda_ipc(request, settings);
}

}  // namespace

std::unique_ptr<Transport> make_cuda_ipc(const TransportRequest& request,
                                         const CudaIpcSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size,
        "cuda_ipc: a rank must be from 0 to size - 1");
  check(request.store != nullptr, "cuda_ipc: a transport needs a store");
  check(settings.slots == 0 || settings.slots >= kMinimumCredit,
        "cuda_ipc needs at least kMinimumCredit slots");
  check(settings.segment_bytes > 0 && settings.segment_bytes % kSegmentAlignment == 0,
        "cuda_ipc: segment_bytes must be a multiple of kSegmentAlignment");
  check(settings.make_host != nullptr, "cuda_ipc needs a transport for host memory");
  TransportRequest beneath = request;
  beneath.store = prefixed(request.store, "host/");
  auto host = settings.make_host(beneath);

  cuda::BootstrapSettings meeting;
  meeting.driver = settings.driver ? settings.driver : cuda::installed_driver();
  meeting.segment_bytes = settings.segment_bytes;
  meeting.slots = settings.slots != 0 ? settings.slots
                                      : cuda::slot_count(request.devices, settings.segment_bytes);
  meeting.process = settings.process.empty() ? posix::process_identity() : settings.process;
  meeting.device = cuda::choose_device(*meeting.driver, settings.device, request.rank);
  auto met = cuda::meet(request, meeting);
  return std::make_unique<CudaTransport>(std::move(host), std::move(met), settings.patience);
}

std::string why_not_serving(const TransportRequest& request) {
  return cuda::why_no_peer_access(request.devices);
}

// Excluded from auto if no rank has a device: a job without device memory must not initialize a
// driver.
TransportKind cuda_ipc_transport() {
  TransportKind kind{"cuda_ipc", Reach::kHost, why_no_driver, make};
  kind.is_for_auto = false;
  kind.why_not_serving = why_not_serving;
  return kind;
}

}  // namespace kolo::inline v0
