#include "transports/ofi/transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/base/liveness.h"
#include "transports/base/transport_kind.h"
#include "transports/error.h"
#include "transports/ofi/bootstrap.h"
#include "transports/ofi/channel.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/endpoint_group.h"
#include "transports/ofi/patience.h"
#include "transports/ofi/progress_watchdog.h"
#include "transports/ofi/provider.h"
#include "transports/posix/epoll.h"
#include "transports/posix/host/identity.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;

// How long a rank that is done waits until its peers have all data that it sent, and until the
// provider is at rest.
constexpr auto kLastPatience = 2s;

// Posted receives for control messages, shared by all peers.
constexpr std::size_t kControls = 8;

// Calls of progress() between two checks of the watchdog, for callers that do not sleep.
constexpr unsigned kCallsPerPulse = 256;

// Posted receives into a channel's buffers, if the provider's queue has room.
constexpr std::size_t kBuffers = 4;

class OfiTransport final : public Transport, private ofi::Owner {
 public:
  OfiTransport(const TransportRequest& request, const OfiSettings& settings)
      : rank_(request.rank), size_(request.size), can_sleep_(settings.can_sleep) {
    check(size_ <= ofi::kMostRanks, "ofi joins at most 65536 ranks");
    const auto providers = ofi::agree_on_providers(request, settings.provider);
    try {
      meet(request, open_first(request, settings, providers));
      if (ofi::known_provider(provider_).needs_automatic_progress)
        watchdog_.emplace(settings.patience);
    } catch (...) {
      give_up();
      throw;
    }
  }

  ~OfiTransport() override {
    say_goodbye();
    quiesce();
  }

  std::string_view name() const override { return "ofi"; }
  std::string carrier() const override { return provider_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size_ && peer != rank_, "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    if (!endpoint_->is_open()) return;
    endpoint_->poll();
    if (has_unposted_control_) post_controls();
    for (const auto& channel : channels_) {
      if (channel && channel->has_unposted()) channel->push_owed();
    }
    liveness_->look_now_and_then();
    if (watchdog_ && ++calls_ % kCallsPerPulse == 0) feel_pulse();
  }

  int descriptor() const override { return endpoint_->descriptor() < 0 ? -1 : watch_.descriptor(); }

  bool arm() override {
    if (!endpoint_->is_open() || descriptor() < 0) return false;
    liveness_->look();
    progress();
    if (watchdog_) feel_pulse();
    const bool has_moved = endpoint_->done() != done_ || liveness_->gone() != gone_;
    done_ = endpoint_->done();
    gone_ = liveness_->gone();
    return !has_moved && !has_unposted() && !has_ending() && endpoint_->is_quiet();
  }

  void disarm() override {}

  void quiesce() noexcept override {
    for (const auto& channel : channels_) {
      if (channel) channel->close();
    }
    leave_words();
    const bool is_open = endpoint_ && endpoint_->is_open();
    const bool stays_open = is_open && (may_crash_at_close() || (!group_ && !come_to_rest()));
    if (liveness_) liveness_->close();  // before the endpoint: see OfiChannel::may_post
    if (!is_open) return;
    if (stays_open) {
      ofi::keep_open(endpoint_->give_up());
    } else if (group_) {
      ofi::close_together(*group_, endpoint_->give_up());
    } else {
      endpoint_->close();
    }
  }

 private:
  // Called after a poll(). Error kSystem if the provider's thread has ended.
  void feel_pulse() {
    const auto verdict = watchdog_->look(Clock::now(), endpoint_->done());
    if (verdict == ofi::ProgressWatchdog::Verdict::kFine) return;
    if (verdict == ofi::ProgressWatchdog::Verdict::kDead) {
      throw Error(
          ErrorCode::kSystem, kNoPeer,
          fmt::format(
              "rank {}: libfabric's provider {} makes no progress (ofi): not even a message "
              "from this rank to itself has arrived. Its thread ends if an unknown client "
              "sends to its port, as a port scan does (FI_LOG_LEVEL=warn reports that): "
              "run the job again, or use another provider (KOLO_OFI_PROVIDER)",
              rank_, endpoint_->provider()));
    }
    const auto word =
        ofi::to_bits({ofi::MessageKind::kHello, static_cast<std::uint32_t>(rank_), 0});
    const auto posted =
        endpoint_->inject(rank_, {control_places_.data(), 0}, ofi::control_tag(token_), word);
    if (posted == ofi::Posted::kYes) watchdog_->asked();
    if (posted == ofi::Posted::kNever) watchdog_.reset();  // this rank cannot send to itself
  }

  // libfabric 2.1 crashes in tcp and shm at the close of an endpoint with unsent data, or whose
  // peer died during a send. Such an endpoint stays open until the process ends. A provider with
  // its own thread (sockets) must close: the thread would keep using memory that the caller has
  // back.
  bool may_crash_at_close() noexcept {
    if (ofi::major_version() < 2) return false;
    if (ofi::known_provider(endpoint_->provider()).needs_automatic_progress) return false;
    try {
      if (liveness_) liveness_->look();
    } catch (const std::exception&) {  // liveness is unknown
      return true;
    }
    return std::any_of(channels_.begin(), channels_.end(),
                       [](const auto& channel) { return channel && channel->is_broken_off(); });
  }

  // Opens the first of `providers` that all ranks can open. Returns the addresses of all ranks.
  std::vector<ofi::EndpointAddress> open_first(const TransportRequest& request,
                                               const OfiSettings& settings,
                                               const std::vector<std::string>& providers) {
    std::vector<ofi::Unopened> attempts;
    for (const std::string& provider : providers) {
      const auto addresses =
          ofi::exchange_addresses(request, open(provider, settings), attempts.size());
      const auto unopened = ofi::unopened_in(addresses);
      if (!unopened) return addresses;
      attempts.push_back(*unopened);
      give_up();
      endpoint_.reset();
      liveness_.reset();
    }
    ofi::fail_unopened(request, attempts);
  }

  // On failure the address carries the reason, so that the other ranks learn of it.
  ofi::EndpointAddress open(const std::string& provider, const OfiSettings& settings) {
    provider_ = provider;
    const ofi::KnownProvider known = ofi::known_provider(provider);
    const bool is_set = settings.segment_bytes != 0;
    longest_bytes_ = is_set ? settings.segment_bytes : known.longest_bytes;
    segment_bytes_ = is_set ? settings.segment_bytes : known.segment_bytes;
    ofi::EndpointAddress address;
    address.provider = provider;
    address.segment_bytes = segment_bytes_;
    address.token = std::random_device{}();
    address.process = posix::process_identity();
    try {
      auto found = ofi::find_provider(provider);
      if (!found.info)
        throw Error(ErrorCode::kUnavailable, kNoPeer, provider + ": " + found.why_not);
      const std::string host = ofi::host_of(*found.info);
      const auto operations = 2 * ofi::kLongestWindow * static_cast<std::size_t>(size_) + kControls;
      name_.clear();
      endpoint_.emplace(std::move(found.info), operations, can_sleep_);
      check_room();
      address.window = window();
      address.name = name_ = endpoint_->name();
      liveness_.emplace(rank_, size_, host);
      address.liveness = liveness_->address();
    } catch (const Error& error) {
      address.why_not = error.what();
    }
    return address;
  }

  // The provider's queue must hold the windows of all peers, which may arrive before this rank
  // polls.
  std::size_t window() const {
    const auto peers = static_cast<std::size_t>(std::max(size_ - 1, 1));
    return std::clamp(endpoint_->receives_at_once() / peers, ofi::kSlots, ofi::kLongestWindow);
  }

  // The provider's queues must hold the contract's minimum for all peers at once.
  void check_room() const {
    const auto peers = static_cast<std::size_t>(size_ - 1);
    const std::size_t receives = peers + kControls;
    const std::size_t sends = peers * ofi::kSlots;
    if (endpoint_->receives_at_once() >= receives && endpoint_->sends_at_once() >= sends) return;
    throw Error(
        ErrorCode::kUnavailable, kNoPeer,
        fmt::format(
            "libfabric's provider {} has queues for {} sends and {} receives, too short for {} "
            "ranks, which need {} and {}: choose another provider (KOLO_OFI_PROVIDER), or fewer "
            "ranks",
            endpoint_->provider(), endpoint_->sends_at_once(), endpoint_->receives_at_once(), size_,
            sends, receives));
  }

  void meet(const TransportRequest& request, const std::vector<ofi::EndpointAddress>& addresses) {
    const ofi::EndpointAddress& own = addresses[static_cast<std::size_t>(rank_)];
    std::vector<std::string> names;
    std::vector<LivenessAddress> liveness_addresses;
    for (const auto& address : addresses) {
      names.push_back(address.name);
      processes_.push_back(address.process);
      liveness_addresses.push_back(address.liveness);
    }
    endpoint_->know(names);
    liveness_->know(std::move(liveness_addresses));
    watch_.add(liveness_->descriptor(), EPOLLIN, 0);
    if (endpoint_->descriptor() >= 0) watch_.add(endpoint_->descriptor(), EPOLLIN, 0);
    token_ = own.token;
    for (ofi::Operation& control : controls_) control.owner = this;
    post_controls();
    connect_all(request, addresses);
    if (ofi::known_provider(own.provider).shares_regions) join_household(addresses);
    const auto peers = static_cast<std::size_t>(std::max(size_ - 1, 1));
    const std::size_t room = (endpoint_->receives_at_once() - kControls) / peers;
    for (int peer = 0; peer < size_; ++peer) {
      channels_.push_back(nullptr);
      if (peer == rank_) continue;
      const ofi::EndpointAddress& other = addresses[static_cast<std::size_t>(peer)];
      const ofi::Pair pair{rank_,
                           peer,
                           segment_bytes_,
                           longest_bytes_,
                           std::min(own.window, other.window),
                           own.token,
                           other.token,
                           std::min(ofi::kMostReceives, room),
                           std::min(kBuffers, room)};
      channels_.back() = std::make_unique<ofi::OfiChannel>(*endpoint_, *liveness_, pair);
    }
    for (const ofi::ImmediateData& word : early_ends_) hear(word);
  }

  // Called before any rank can end: see endpoint_group.h.
  void join_household(const std::vector<ofi::EndpointAddress>& addresses) {
    const ofi::EndpointAddress& own = addresses[static_cast<std::size_t>(rank_)];
    ofi::unlink_region(own.name);
    const auto members = std::count_if(
        addresses.begin(), addresses.end(),
        [&](const ofi::EndpointAddress& address) { return address.process == own.process; });
    group_ = {addresses[0].name + std::to_string(addresses[0].token),
              static_cast<std::size_t>(members)};
  }

  // Two endpoints receive nothing from each other until both have polled at least once. After this
  // call a rank may send and end while its peer does something else.
  void connect_all(const TransportRequest& request,
                   const std::vector<ofi::EndpointAddress>& addresses) {
    std::byte nothing{};
    const auto word =
        ofi::to_bits({ofi::MessageKind::kHello, static_cast<std::uint32_t>(rank_), 0});
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const auto tag = ofi::control_tag(addresses[static_cast<std::size_t>(peer)].token);
      while (true) {
        const auto posted = endpoint_->inject(peer, {&nothing, 0}, tag, word);
        if (posted == ofi::Posted::kYes) break;
        const bool is_refused = posted == ofi::Posted::kNever;
        ofi::fail_if_late(request, peer,
                          "does not answer" + (is_refused ? ": " + endpoint_->why() : ""));
        endpoint_->poll();
        ::sched_yield();
      }
    }
    ofi::wait_for_all(request, [this] {
      endpoint_->poll();
      post_controls();
    });
  }

  // Called when the bootstrap failed. If the region has a name, ranks of this process may have
  // opened it, so the endpoint stays open.
  void give_up() noexcept {
    if (!endpoint_ || !endpoint_->is_open()) return;
    const bool shares_regions = ofi::known_provider(endpoint_->provider()).shares_regions;
    if (!shares_regions || name_.empty() || group_) return quiesce();
    ofi::unlink_region(name_);
    ofi::keep_open(endpoint_->give_up());
  }

  void post_controls() {
    has_unposted_control_ = false;
    for (std::size_t i = 0; i < kControls; ++i) {
      if (is_posted_[i]) continue;
      std::byte& place = control_places_[i];
      is_posted_[i] = endpoint_->receive({&place, 0}, ofi::control_tag(token_), controls_[i]) ==
                      ofi::Posted::kYes;
      has_unposted_control_ |= !is_posted_[i];
    }
  }

  void done(ofi::Operation& operation, std::size_t, std::uint64_t bits) override {
    const auto place = static_cast<std::size_t>(&operation - controls_.data());
    is_posted_[place] = false;
    has_unposted_control_ = true;
    const ofi::ImmediateData word = ofi::immediate_from_bits(bits);
    if (!channels_.empty()) return hear(word);
    // This rank still waits for other ranks. Each rank announces its end once.
    const bool is_end = word.kind == ofi::MessageKind::kEnd;
    if (is_end && early_ends_.size() < static_cast<std::size_t>(size_)) early_ends_.push_back(word);
  }

  void hear(const ofi::ImmediateData& word) {
    const bool is_peer = word.rank < channels_.size() && channels_[word.rank] != nullptr;
    if (is_peer) channels_[word.rank]->hear(word);
  }

  void failed(ofi::Operation& operation, const std::string&) override {
    is_posted_[static_cast<std::size_t>(&operation - controls_.data())] = false;
    has_unposted_control_ = true;
  }

  // Ends all receives before close. libfabric's tcp (1.17) crashes if it is closed while it reads a
  // peer's memory (xnet_ep_flush_all_queues ends such a read twice), and the closing rank cannot
  // see such a read. So cancel all receives and wait for those that cannot be cancelled. Returns
  // false if the peer does not continue: then the endpoint stays open, without progress, until the
  // process ends.
  bool come_to_rest() noexcept {
    if (!ofi::known_provider(endpoint_->provider()).closes_at_rest) return true;
    const bool has_patience = ofi::has_patience_with("", Clock::now());
    try {
      for (ofi::Operation& control : controls_) endpoint_->cancel(control);
      for (const auto& channel : channels_) {
        if (channel) channel->cancel_receives();
      }
      endpoint_->poll();
      while (endpoint_->receives() > 0 && has_patience && Clock::now() < end_of_patience()) {
        endpoint_->poll();
        ::sched_yield();
      }
      if (endpoint_->receives() > 0 && has_patience) ofi::lose_patience_with("", Clock::now());
    } catch (const std::exception&) {  // the completion queue has failed
      return false;
    }
    return endpoint_->receives() == 0;
  }

  // Called while the endpoint is open: a peer that notices the close then finds the last word.
  void leave_words() noexcept {
    if (!liveness_ || channels_.size() != static_cast<std::size_t>(size_)) return;
    liveness_->leave_words(
        [this](int peer) { return channels_[static_cast<std::size_t>(peer)]->taken(); });
  }

  bool has_unposted() const {
    return std::any_of(channels_.begin(), channels_.end(),
                       [](const auto& channel) { return channel && channel->has_unposted(); });
  }

  bool has_ending() const {
    return std::any_of(channels_.begin(), channels_.end(),
                       [](const auto& channel) { return channel && channel->is_ending(); });
  }

  // One for all waits of this transport's end.
  Deadline end_of_patience() {
    if (end_of_patience_ == Deadline{}) end_of_patience_ = Clock::now() + kLastPatience;
    return end_of_patience_;
  }

  // Waits until every peer has all data that was sent to it, or has ended.
  void say_goodbye() noexcept {
    try {
      while (endpoint_ && endpoint_->is_open()) {
        const std::vector<int> left = still_owed();
        const bool is_late = Clock::now() >= end_of_patience();
        for (const int peer : left) {
          if (is_late) ofi::lose_patience_with(process_of(peer), Clock::now());
        }
        if (left.empty() || is_late) break;
        liveness_->look();
        progress();
        ::sched_yield();
      }
    } catch (const std::exception&) {  // an error of the provider; no remedy here
    }
  }

  // Peers that do not have all data yet, and that are worth waiting for.
  std::vector<int> still_owed() {
    std::vector<int> peers;
    for (const auto& channel : channels_) {
      if (!channel || channel->say_goodbye()) continue;
      const std::string& process = process_of(channel->peer());
      if (process == process_of(rank_) || ofi::has_patience_with(process, Clock::now()))
        peers.push_back(channel->peer());
    }
    return peers;
  }

  const std::string& process_of(int peer) const {
    return processes_[static_cast<std::size_t>(peer)];
  }

  const int rank_;
  const int size_;
  const bool can_sleep_;
  std::size_t segment_bytes_ = 0;
  std::size_t longest_bytes_ = 0;
  std::uint32_t token_ = 0;
  std::string provider_;
  std::string name_;                    // of the endpoint
  std::vector<std::string> processes_;  // identities, by rank
  Deadline end_of_patience_{};
  posix::Epoll watch_;
  std::optional<PeerLiveness> liveness_;
  std::array<ofi::Operation, kControls> controls_;
  std::array<std::byte, kControls> control_places_{};
  std::array<bool, kControls> is_posted_{};
  bool has_unposted_control_ = false;
  std::vector<ofi::ImmediateData> early_ends_;  // of peers that ended before the channels existed
  std::vector<std::unique_ptr<ofi::OfiChannel>> channels_;
  std::optional<ofi::Endpoint>
      endpoint_;  // declared after its operations, so destroyed before them
  std::optional<ofi::EndpointGroup> group_;
  std::optional<ofi::ProgressWatchdog> watchdog_;  // only if the provider has a thread of its own
  unsigned calls_ = 0;
  std::uint64_t done_ = 0;
  int gone_ = 0;
};

std::unique_ptr<Transport> make(const TransportRequest& request) {
  OfiSettings settings = ofi_settings(read_settings());
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  return make_ofi(request, settings);
}

}  // namespace

OfiSettings ofi_settings(const Settings& settings) {
  const bool never_sleeps = settings.wait == WaitKind::kSpin || settings.wait == WaitKind::kYield;
  OfiSettings ofi;
  ofi.provider = settings.ofi_provider;
  ofi.segment_bytes = settings.segment_bytes;
  ofi.can_sleep = !never_sleeps;
  return ofi;
}

std::unique_ptr<Transport> make_ofi(const TransportRequest& request, const OfiSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size, "a rank must be from 0 to size - 1");
  check(request.store != nullptr, "a transport needs a store");
  return std::make_unique<OfiTransport>(request, settings);
}

TransportKind ofi_transport() {
  TransportKind kind{"ofi", Reach::kNetwork, ofi::why_no_library,
                     make,  nullptr,         ofi::usable_providers};
  // RDMA needs a provider that the user names, such as "verbs;ofi_rxm". The providers that ofi
  // chooses itself do not use it.
  kind.uses_rdma = [](const Settings& settings) {
    return ofi::may_use_rdma(settings.ofi_provider);
  };
  return kind;
}

}  // namespace kolo::inline v0
