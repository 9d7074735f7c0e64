#include "transports/ucx/transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "transports/base/check.h"
#include "transports/base/transport_kind.h"
#include "transports/base/waiting.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/settings.h"
#include "transports/store/all_gather.h"
#include "transports/ucx/buffer_sizes.h"
#include "transports/ucx/channel.h"
#include "transports/ucx/endpoint_transports.h"
#include "transports/ucx/reserved_descriptors.h"

namespace kolo::inline v0 {

namespace {

using ucx::Header;
using ucx::Kind;
using ucx::UcxChannel;

// Up to this size, all ranks connect to all others at the start. In larger jobs only communicating
// pairs connect. But then a rank that sends its last segments before the connection is made needs
// its peer's help to end.
constexpr int kAllConnect = 32;

// Descriptors that UCX needs at its start. Counted with UCX 1.13 and two network devices: five for
// the process, twelve for a rank, four for a moment; and half as many more for machines with more
// devices.
constexpr int kDescriptors = 32;

// How long the destructor tries to send the rest, and how long quiesce() waits for drained data to
// leave.
constexpr auto kLastPatience = std::chrono::seconds(2);

// Interval between looks at the liveness sockets while a rank spins. Reading the clock costs as
// much as a few calls of UCX, so it is read only every kProgressPerClock calls.
constexpr auto kLookEvery = std::chrono::milliseconds(1);
constexpr unsigned kProgressPerClock = 64;

static_assert(UcxSettings{}.segment_bytes <= ucx::kTcpBufferBytes);
static_assert(UcxSettings{}.queued_segment_bytes <= ucx::kQueueBufferBytes);

class UcxTransport final : public Transport {
 public:
  // `promised` reserves descriptors for UCX itself and, if all ranks connect, for all peers.
  UcxTransport(const TransportRequest& request, const UcxSettings& settings,
               ucx::ReservedDescriptors& promised)
      : size_(request.size), shared_(ucx::library(), request.rank, request.size) {
    promised.opened();
    shared_.asks_as_told = settings.asks_as_told;
    let_messages_in();
    exchange_addresses(request, settings);
    const std::size_t preferred_bytes = find_preferred_bytes();
    for (int peer = 0; peer < size_; ++peer) {
      channels_.push_back(peer == rank()
                              ? nullptr
                              : std::make_unique<UcxChannel>(shared_, peer, settings.segment_bytes,
                                                             preferred_bytes));
    }
    shared_.epoll.add(shared_.worker.descriptor(), EPOLLIN, static_cast<std::uint64_t>(size_));
    try {
      if (size_ <= kAllConnect) meet(request);
      carrier_ = carriers_of_first();
      has_met_ = true;
    } catch (...) {
      if (shared_.is_meeting) give_up();
      quiesce();
      throw;
    }
  }

  ~UcxTransport() override {
    send_the_rest();
    quiesce();
  }

  std::string_view name() const override { return "ucx"; }
  std::string carrier() const override { return carrier_; }
  int rank() const override { return shared_.rank; }
  int size() const override { return size_; }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size_ && peer != rank(), "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    if (is_quiesced_) return;
    if (shared_.holding > 0) send_held();
    shared_.worker.progress();
    if (++calls_ % kProgressPerClock != 0 && !is_look_due_) return;
    const auto now = Clock::now();
    if (!is_look_due_ && now - looked_ < kLookEvery) return;
    looked_ = now;
    is_look_due_ = false;
    look();
  }

  int descriptor() const override { return shared_.epoll.descriptor(); }

  bool arm() override {
    if (is_quiesced_) return false;
    is_look_due_ = true;
    if (shared_.holding > 0) send_held();
    if (look()) return false;
    return shared_.worker.arm();
  }

  void disarm() override {}

  void quiesce() noexcept override {
    if (std::exchange(is_quiesced_, true)) return;
    for_each([](UcxChannel& channel) { channel.close(); });
    let_go_of_what_was_drained();
    shared_.liveness.part([this](const ucx::Farewell& watcher) { return farewell_to(watcher); });
    // UCX aborts the process if one of its reads of a peer's memory is under way.
    shared_.read_what_is_there();
    for_each([](UcxChannel& channel) { channel.drop(); });
    if (is_connecting() || shared_.worker.is_flushing()) {
      shared_.worker.abandon();
    } else {
      shared_.worker.close(has_requests() ? ucx::Worker::Requests::kUnderWay
                                          : ucx::Worker::Requests::kNone);
    }
  }

 private:
  template <typename Body>
  void for_each(Body&& body) {
    for (const auto& channel : channels_) {
      if (channel) body(*channel);
    }
  }

  void send_held() {
    for_each([](UcxChannel& channel) { channel.send_held(); });
  }

  // --- the start ---

  template <Kind kind>
  static ucs_status_t take(void* self, const void* header, std::size_t header_bytes, void* data,
                           std::size_t bytes, const ucp_am_recv_param_t* param) {
    return static_cast<UcxTransport*>(self)->dispatch(kind, header, header_bytes, data, bytes,
                                                      param->recv_attr);
  }

  void let_messages_in() {
    shared_.worker.let(Kind::kSegment, take<Kind::kSegment>, this);
    shared_.worker.let(Kind::kCredit, take<Kind::kCredit>, this);
    shared_.worker.let(Kind::kHello, take<Kind::kHello>, this);
    shared_.worker.let(Kind::kReady, take<Kind::kReady>, this);
    shared_.worker.let(Kind::kGoodbye, take<Kind::kGoodbye>, this);
  }

  // Drops messages from unknown ranks.
  ucs_status_t dispatch(Kind kind, const void* header, std::size_t header_bytes, void* data,
                        std::size_t bytes, std::uint64_t attributes) noexcept {
    const auto read = ucx::read_header(header, header_bytes);
    if (!read) return UCS_OK;
    const std::uint32_t from = read->header.from;
    if (from >= channels_.size() || !channels_[from]) return UCS_OK;
    return channels_[from]->accept(kind, *read, data, bytes, attributes);
  }

  // The result is the same on all ranks.
  std::size_t find_preferred_bytes() const {
    const ucx::EndpointAddress& own = shared_.addresses[static_cast<std::size_t>(rank())];
    std::size_t least = own.host_bytes;
    for (const ucx::EndpointAddress& address : shared_.addresses) {
      if (address.identity != own.identity) return own.segment_bytes;
      least = std::min(least, address.host_bytes);
    }
    return least;
  }

  void exchange_addresses(const TransportRequest& request, const UcxSettings& settings) {
    const std::size_t segment_bytes = settings.segment_bytes;
    const bool has_queues = ucx::has_queues(ucx::resources_in(shared_.worker.describe_resources()));
    ucx::EndpointAddress own;
    own.identity = posix::host_identity();
    own.liveness = shared_.liveness.name();
    own.address = shared_.worker.address();
    own.token = std::random_device()();
    own.segment_bytes = segment_bytes;
    own.host_bytes =
        has_queues ? std::min(segment_bytes, settings.queued_segment_bytes) : segment_bytes;
    const auto texts = exchange(*request.store, rank(), size_, "address", to_text(own),
                                request.deadline, "publish their ucx addresses");
    for (int peer = 0; peer < size_; ++peer) {
      shared_.addresses.push_back(
          ucx::address_from_text(texts[static_cast<std::size_t>(peer)], peer));
      const std::size_t theirs = shared_.addresses.back().segment_bytes;
      if (theirs == segment_bytes) continue;
      throw Error(ErrorCode::kMismatch, peer,
                  fmt::format("rank {} has ucx segments of {} bytes, rank {} of {}: set "
                              "KOLO_SEGMENT_BYTES to the same value on every rank",
                              rank(), segment_bytes, peer, theirs));
    }
  }

  // Connects to all ranks. Returns once no peer's pending message needs this rank's progress.
  void meet(const TransportRequest& request) {
    const auto start = Clock::now();
    shared_.is_meeting = true;
    for_each([](UcxChannel& channel) {
      channel.connect();
      channel.throw_if_lost();
    });
    WaitPolicy policy(request.local_ranks);
    while (true) {
      // Look for ended peers first: the liveness socket must report an end before UCX notices the
      // broken connection, which aborts the process (SharedState::is_meeting).
      look();
      const auto missing = unheard();
      if (missing.empty()) break;
      progress();
      if (policy.pause(*this, *request.store, request.deadline)) continue;
      const std::chrono::duration<double> waited = Clock::now() - start;
      throw Error(ErrorCode::kDeadline, missing.front(),
                  fmt::format("rank {}: waited {:.1f} s for {} of {} to connect by ucx: check "
                              "their output, and for a firewall between the hosts",
                              rank(), waited.count(), name_ranks(missing), size_));
    }
    shared_.is_meeting = false;
  }

  // Ends a transport whose ranks have not all connected. Nothing was sent that would have to leave.
  void give_up() noexcept {
    is_quiesced_ = true;
    for_each([](UcxChannel& channel) { channel.close(); });
    shared_.worker.abandon();
  }

  // Tells connected peers that this rank is ready. Returns the peers that are not ready or not yet
  // told. Throws if a peer is lost.
  std::vector<int> unheard() {
    std::vector<int> missing;
    for_each([&missing](UcxChannel& channel) {
      if (channel.is_settled()) channel.say_ready();
      if (channel.has_parted()) return;  // it was ready, and has ended since
      if (channel.is_peer_ready() && channel.is_settled() && channel.has_all_sent()) return;
      channel.throw_if_lost();
      missing.push_back(channel.peer());
    });
    return missing;
  }

  bool is_connecting() const {
    return std::any_of(channels_.begin(), channels_.end(), [](const auto& channel) {
      return channel && channel->has_endpoint() && !channel->is_settled();
    });
  }

  bool has_requests() const {
    return std::any_of(channels_.begin(), channels_.end(),
                       [](const auto& channel) { return channel && channel->has_requests(); });
  }

  // --- end of peers ---

  // Returns true if there was news of peers.
  bool look() {
    std::array<epoll_event, 16> events;
    bool is_any = false;
    for (const epoll_event& event : shared_.epoll.wait(events, 0)) {
      if (event.data.u64 >= channels_.size()) continue;
      UcxChannel& channel = *channels_[event.data.u64];
      const auto news = shared_.liveness.hear(channel.peer());
      if (news.farewell) channel.hear(*news.farewell);
      if (news.is_end) channel.end();
      is_any = true;
    }
    for_each([&](UcxChannel& channel) {
      channel.watch_again();
      if (!channel.is_broken()) return;
      channel.end();
      is_any = true;
    });
    return is_any;
  }

  // --- end of this rank ---

  // Makes progress until `is_done()`, for a bounded time.
  template <typename Condition>
  void try_until(const Condition& is_done) noexcept {
    const auto deadline = Clock::now() + kLastPatience;
    try {
      while (!is_done() && Clock::now() < deadline) {
        if (shared_.worker.progress() > 0 || look()) continue;
        if (!shared_.worker.arm()) continue;
        pollfd watched{shared_.epoll.descriptor(), POLLIN, 0};
        ::poll(&watched, 1, 10);
      }
    } catch (const std::exception&) {  // an error of the kernel or UCX; no remedy here
    }
  }

  void send_the_rest() noexcept {
    if (is_quiesced_) return;
    send_held();
    try_until([this] {
      return std::all_of(channels_.begin(), channels_.end(), [](const auto& channel) {
        return !channel || channel->is_over() || channel->has_all_sent();
      });
    });
  }

  // Drained data may still be in UCX. Sends a goodbye where all has left, and waits for it to
  // leave.
  void let_go_of_what_was_drained() noexcept {
    for_each([](UcxChannel& channel) { channel.say_goodbye(); });
    try_until([this] {
      return !shared_.worker.is_flushing() &&
             std::all_of(channels_.begin(), channels_.end(), [](const auto& channel) {
               return !channel || channel->is_over() || channel->has_left();
             });
    });
  }

  // Transports of the first peer's connection, without repetitions; empty if there is no
  // connection.
  std::string carriers_of_first() const {
    std::vector<std::string> names;
    for (const auto& channel : channels_) {
      if (channel) {
        names = channel->carriers();
        break;
      }
    }
    std::string text;
    for (auto name = names.begin(); name != names.end(); ++name) {
      if (std::find(names.begin(), name, *name) == name) text += (text.empty() ? "" : ",") + *name;
    }
    return text;
  }

  std::optional<ucx::Farewell> farewell_to(const ucx::Farewell& watcher) const {
    if (!has_met_ || watcher.rank >= channels_.size() || !channels_[watcher.rank])
      return std::nullopt;
    if (watcher.token != shared_.addresses[watcher.rank].token) return std::nullopt;
    auto farewell = channels_[watcher.rank]->farewell();
    if (!farewell) return std::nullopt;
    farewell->token = shared_.addresses[static_cast<std::size_t>(rank())].token;
    farewell->rank = static_cast<std::uint32_t>(rank());
    return farewell;
  }

  const int size_;
  ucx::SharedState shared_;
  std::vector<std::unique_ptr<UcxChannel>> channels_;
  unsigned calls_ = 0;
  Clock::time_point looked_{};
  bool is_look_due_ = false;
  bool has_met_ = false;
  bool is_quiesced_ = false;
  std::string carrier_;
};

std::unique_ptr<Transport> make(const TransportRequest& request) {
  UcxSettings settings;
  settings.asks_as_told = read_settings().ucx_asks_as_told;
  if (request.segment_bytes != 0)
    settings.segment_bytes = settings.queued_segment_bytes = request.segment_bytes;
  return make_ucx(request, settings);
}

}  // namespace

std::unique_ptr<Transport> make_ucx(const TransportRequest& request, const UcxSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size, "a rank must be from 0 to size - 1");
  check(request.store != nullptr, "a transport needs a store");
  try {
    const int peers = request.size <= kAllConnect ? request.size - 1 : 0;
    ucx::ReservedDescriptors promised(kDescriptors, peers * ucx::kDescriptorsPerPeer);
    return std::make_unique<UcxTransport>(request, settings, promised);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable ||
        std::string_view(error.what()).starts_with("rank "))
      throw;
    throw Error(error.code(), error.peer(),
                fmt::format("rank {}: ucx: {}", request.rank, error.what()));
  }
}

TransportKind ucx_transport() {
  TransportKind kind{"ucx", Reach::kNetwork, ucx::why_no_library, make};
  kind.uses_rdma = [](const Settings&) { return true; };
  return kind;
}

}  // namespace kolo::inline v0
