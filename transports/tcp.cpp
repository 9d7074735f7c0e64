#include "transports/tcp.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "transports/check.h"
#include "transports/error.h"
#include "transports/posix/epoll.h"
#include "transports/posix/socket.h"
#include "transports/tcp/channel.h"
#include "transports/tcp/mesh.h"
#include "transports/transport_kind.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;

// How long a transport that is destroyed while segments are still queued tries to send them.
constexpr auto kLastPatience = 2s;

// Of the host part of KOLO_STORE.
std::string host_of(const std::string& url) {
  const auto begin = url.find("//");
  const auto end = url.rfind(':');
  if (begin == std::string::npos || end == std::string::npos || end < begin + 2) return "";
  const std::string host = url.substr(begin + 2, end - begin - 2);
  return host.size() > 2 && host.front() == '[' ? host.substr(1, host.size() - 2) : host;
}

bool set_congestion(const posix::Descriptor& socket, const std::string& name) {
  return ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                      static_cast<socklen_t>(name.size())) == 0;
}

constexpr const char* kNoCongestion =
    "KOLO_TCP_CONGESTION='{}': this kernel does not have it, or not for everybody; "
    "/proc/sys/net/ipv4/tcp_allowed_congestion_control lists what it has";

void choose_congestion(const tcp::Peer& peer, const TcpSettings& settings) {
  if (settings.congestion == "system") return;
  if (!settings.congestion.empty()) {
    if (set_congestion(peer.socket, settings.congestion)) return;
    throw Error(ErrorCode::kUnavailable, kNoPeer,
                fmt::format(fmt::runtime(kNoCongestion), settings.congestion));
  }
  if (!peer.is_on_this_host) return;
  if (!set_congestion(peer.socket, "reno")) set_congestion(peer.socket, "cubic");
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TransportRequest& request, const TcpSettings& settings)
      : rank_(request.rank), size_(request.size) {
    auto peers = tcp::connect_all(request, settings);
    for (int rank = 0; rank < size_; ++rank) {
      tcp::Peer& peer = peers[static_cast<std::size_t>(rank)];
      if (rank == rank_) {
        channels_.push_back(nullptr);
        continue;
      }
      posix::set_low_latency(peer.socket);
      posix::set_keepalive(peer.socket);
      choose_congestion(peer, settings);
      // Edge-triggered: what has been seen and left alone must not wake anybody again. Room to
      // write is reported only after the socket has refused.
      epoll_.add(peer.socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                 static_cast<std::uint64_t>(rank));
      channels_.push_back(std::make_unique<tcp::TcpChannel>(
          std::move(peer.socket), rank_, rank, std::move(peer.address), settings.segment_bytes));
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
    check(peer >= 0 && peer < size_ && peer != rank_, "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    for (const auto& channel : channels_) {
      if (channel && channel->has_queued()) channel->flush();
    }
  }

  int descriptor() const override { return epoll_.descriptor(); }

  // News that came since the last look is in epoll's list; taking it off makes the descriptor
  // silent.
  bool arm() override {
    std::array<epoll_event, 64> events;
    bool is_new = false;
    while (!epoll_.wait(events, 0).empty()) is_new = true;
    return !is_new;
  }

  void disarm() override {}

  void quiesce() noexcept override {
    for (const auto& channel : channels_) {
      if (channel) channel->close();
    }
  }

 private:
  void send_the_rest() noexcept {
    const auto deadline = Clock::now() + kLastPatience;
    for (const auto& channel : channels_) {
      try {
        while (channel && channel->has_queued() && !channel->is_lost() && !channel->is_drained() &&
               Clock::now() < deadline) {
          pollfd watched{channel->descriptor(), POLLOUT, 0};
          ::poll(&watched, 1, 100);
        }
      } catch (const std::exception&) {  // the peer is gone: nobody is left to read it
      }
    }
  }

  const int rank_;
  const int size_;
  posix::Epoll epoll_;
  std::vector<std::unique_ptr<tcp::TcpChannel>> channels_;
};

// What every rank of this host would find, before there are any.
void check_settings(const Settings& settings) {
  const std::string& congestion = settings.tcp_congestion;
  if (!congestion.empty() && congestion != "system") {
    const posix::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.is_open() && !set_congestion(socket, congestion))
      throw std::invalid_argument(fmt::format(fmt::runtime(kNoCongestion), congestion));
  }
  if (settings.tcp_host.empty()) return;
  try {
    posix::listen_on(settings.tcp_host, 0);
  } catch (const Error& error) {
    throw std::invalid_argument(fmt::format("KOLO_TCP_HOST='{}' is no address of this machine: {}",
                                            settings.tcp_host, error.what()));
  }
}

std::unique_ptr<Transport> make(const TransportRequest& request) {
  TcpSettings settings = tcp_settings(read_settings());
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  return make_tcp(request, settings);
}

}  // namespace

TcpSettings tcp_settings(const Settings& settings) {
  TcpSettings result;
  result.host = settings.tcp_host;
  result.port_low = settings.tcp_port_low;
  result.port_high = settings.tcp_port_high;
  result.congestion = settings.tcp_congestion;
  result.hello_timeout = settings.hello_timeout;
  if (settings.segment_bytes != 0) result.segment_bytes = settings.segment_bytes;
  result.rendezvous_host = settings.store.empty() ? settings.master_host : host_of(settings.store);
  return result;
}

std::unique_ptr<Transport> make_tcp(const TransportRequest& request, const TcpSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size, "a rank must be from 0 to size - 1");
  check(request.store != nullptr, "a transport needs a store");
  return std::make_unique<TcpTransport>(request, settings);
}

TransportKind tcp_transport() { return {"tcp", Reach::kNetwork, nullptr, make, check_settings}; }

}  // namespace kolo
