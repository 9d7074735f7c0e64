#include "transports/tcp/transport.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/base/transport_kind.h"
#include "transports/error.h"
#include "transports/posix/epoll.h"
#include "transports/posix/host/addresses.h"
#include "transports/posix/socket.h"
#include "transports/store/url.h"
#include "transports/tcp/connection_channel.h"
#include "transports/tcp/host_selection.h"
#include "transports/tcp/lanes_channel.h"
#include "transports/tcp/listener.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;

// Timeout of the destructor for sending queued segments.
constexpr auto kLastPatience = 2s;

// Interval of looking for new connections while a rank spins. Reading the clock costs as much as a
// few passes over all queues, so it is read only every kProgressPerClock calls.
constexpr auto kLookEvery = 1ms;
constexpr std::uint64_t kProgressPerClock = 64;

// Bandwidth-delay product of 1 Gb/s and 10 ms, and some more. Only long fat networks use segments
// of this length: a pair keeps up to six of them in each of its ranks.
constexpr std::size_t kLongestSegment = std::size_t{2} << 20;

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TransportRequest& request, const TcpSettings& settings)
      : rank_(request.rank), size_(request.size), listener_(request, settings, epoll_) {
    for (int peer = 0; peer < size_; ++peer) {
      channels_.push_back(nullptr);
      if (!request.has_peer(peer)) continue;
      if (settings.lanes > 1) {
        channels_.back() =
            std::make_unique<tcp::LanesChannel>(listener_, peer, settings.segment_bytes,
                                                settings.longest_segment_bytes, settings.lanes);
      } else {
        channels_.back() = std::make_unique<tcp::ConnectionChannel>(
            listener_, peer, settings.segment_bytes, settings.longest_segment_bytes);
      }
      listener_.let(peer, *channels_.back());
    }
  }

  ~TcpTransport() override {
    send_the_rest();
    quiesce();
  }

  std::string_view name() const override { return "tcp"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size_ && channels_[static_cast<std::size_t>(peer)],
          "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    for (const auto& channel : channels_) {
      if (channel && channel->has_queued()) channel->flush();
    }
    if (listener_.is_open() && is_look_due()) look_at_listener();
  }

  int descriptor() const override { return epoll_.descriptor(); }

  // Drains epoll's ready list, so that the descriptor is no longer readable. Sockets are registered
  // edge-triggered. So an event that this rank has seen but not handled does not wake it again, and
  // a socket reports room to write only after it has refused data.
  bool arm() override {
    if (is_quiesced_) return false;
    std::array<epoll_event, 64> events;
    bool is_new = false;
    while (true) {
      const auto news = epoll_.wait(events, 0);
      if (news.empty()) return !is_new;
      is_new = true;
      for (const epoll_event& event : news)
        is_listener_news_ |= event.data.u64 == static_cast<std::uint64_t>(size_);
    }
  }

  void disarm() override {}

  void quiesce() noexcept override {
    is_quiesced_ = true;
    for (const auto& channel : channels_) {
      if (channel) channel->close();
    }
    listener_.close();
  }

 private:
  // For unexpected connections; a channel that needs one calls the listener itself.
  bool is_look_due() {
    if (std::exchange(is_listener_news_, false)) return true;
    if (++calls_ % kProgressPerClock != 0) return false;
    const auto now = Clock::now();
    if (now - looked_ < kLookEvery) return false;
    looked_ = now;
    return true;
  }

  void look_at_listener() {
    listener_.look();
    const bool is_complete =
        std::all_of(channels_.begin(), channels_.end(),
                    [](const auto& channel) { return !channel || channel->is_settled(); });
    if (is_complete) listener_.close();
  }

  void send_the_rest() noexcept {
    const auto deadline = Clock::now() + kLastPatience;
    try {
      while (Clock::now() < deadline && has_rest()) {
        if (!arm()) continue;
        pollfd watched{epoll_.descriptor(), POLLIN, 0};
        ::poll(&watched, 1, 100);
      }
    } catch (const std::exception&) {  // an error of the system; ignored, as the transport ends
    }
  }

  // Tries once more to send; true if data is left. Ignores channels with a lost peer. A channel
  // without a descriptor may still get one, and does not hinder the others.
  bool has_rest() {
    bool is_any = false;
    for (const auto& channel : channels_) {
      if (!channel || channel->is_dead()) continue;
      try {
        is_any |= !channel->is_drained() || !channel->say_goodbye();
      } catch (const Error& error) {
        is_any |= error.code() != ErrorCode::kPeerLost;
      }
    }
    return is_any;
  }

  const int rank_;
  const int size_;
  posix::Epoll epoll_;
  tcp::Listener listener_;
  std::vector<std::unique_ptr<tcp::TcpChannel>> channels_;
  std::uint64_t calls_ = 0;
  Clock::time_point looked_{};
  bool is_listener_news_ = false;
  bool is_quiesced_ = false;
};

// Checks settings that every rank of this host would fail with, before ranks are started.
void check_settings(const Settings& settings) {
  const std::string& congestion = settings.tcp_congestion;
  if (!congestion.empty() && congestion != "system") {
    const posix::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.is_open() && !tcp::set_congestion(socket, congestion))
      throw std::invalid_argument(tcp::no_congestion(congestion));
  }
  if (settings.tcp_advertise.find_first_of(" \t\n") != std::string::npos) {
    throw std::invalid_argument(
        fmt::format("KOLO_TCP_ADVERTISE='{}': expected addresses or names, separated by commas",
                    settings.tcp_advertise));
  }
  if (settings.tcp_host.empty()) return;
  const auto interfaces = posix::interface_addresses();
  if (tcp::is_selection(settings.tcp_host, interfaces)) {
    if (tcp::select_hosts(settings.tcp_host, interfaces).empty())
      throw std::invalid_argument(tcp::no_selected(settings.tcp_host, interfaces));
    return;
  }
  try {
    posix::listen_on(settings.tcp_host, 0);
  } catch (const Error& error) {
    throw std::invalid_argument(
        fmt::format("KOLO_TCP_HOST='{}' is neither an address nor an interface of this machine "
                    "({}): {}",
                    settings.tcp_host, tcp::list_text(interfaces), error.what()));
  }
}

std::unique_ptr<Transport> make(const TransportRequest& request) {
  TcpSettings settings = tcp_settings(read_settings());
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  if (request.segment_bytes == 0) settings.longest_segment_bytes = kLongestSegment;
  return make_tcp(request, settings);
}

}  // namespace

TcpSettings tcp_settings(const Settings& settings) {
  TcpSettings result;
  const bool is_selection = tcp::is_selection(settings.tcp_host, posix::interface_addresses());
  (is_selection ? result.selection : result.host) = settings.tcp_host;
  result.advertised = settings.tcp_advertise;
  result.port_low = settings.tcp_port_low;
  result.port_high = settings.tcp_port_high;
  result.congestion = settings.tcp_congestion;
  result.buffer_bytes = settings.tcp_buffer_bytes;
  result.lanes = settings.tcp_lanes;
  result.hello_timeout = settings.hello_timeout;
  if (settings.segment_bytes != 0) result.segment_bytes = settings.segment_bytes;
  const auto url = parse_store_url(settings.store);
  result.rendezvous_host = settings.store.empty() ? settings.master_host : url ? url->host : "";
  return result;
}

std::unique_ptr<Transport> make_tcp(const TransportRequest& request, const TcpSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size, "a rank must be from 0 to size - 1");
  check(request.store != nullptr, "a transport needs a store");
  return std::make_unique<TcpTransport>(request, settings);
}

TransportKind tcp_transport() { return {"tcp", Reach::kNetwork, nullptr, make, check_settings}; }

}  // namespace kolo::inline v0
