#include "transports/cuda/bootstrap.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "transports/base/aligned_memory.h"
#include "transports/base/transport_kind.h"
#include "transports/cuda/address.h"
#include "transports/cuda/hello.h"
#include "transports/error.h"
#include "transports/posix/pending_connections.h"
#include "transports/posix/unix_socket.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0::cuda {

namespace {

constexpr auto kLookEvery = std::chrono::microseconds(200);

Hello hello_in(std::span<const std::byte> said) {
  Hello hello;
  std::memcpy(&hello, said.data(), sizeof hello);
  return hello;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::uint64_t random_token() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::string one_line(std::string text) {
  for (char& letter : text) letter = letter == '\n' ? ' ' : letter;
  return text;
}

class Meeting {
 public:
  Meeting(const TransportRequest& request, const BootstrapSettings& settings)
      : request_(request),
        settings_(settings),
        listener_(request.size + 16),
        pending_connections_(handlers(), index(request.size)),
        calls_(index(request.size)) {
    met_->peers.resize(static_cast<std::size_t>(request.size));
  }

  std::unique_ptr<BootstrapResult> run() {
    const auto why_no_own = attempt([this] { make_own(); });
    publish(why_no_own);
    require_same_sizes();
    if (request_.size > 1) share();
    return std::move(met_);
  }

 private:
  // On failure, slots that a peer may have mapped are not freed.
  void share() {
    std::vector<std::string> reasons;
    try {
      hand_over();
      const auto why_no_peers = attempt([this] { map_peers(); });
      reasons = exchange(*request_.store, request_.rank, request_.size, "mapped", why_no_peers,
                         request_.deadline, "map one another's memory (cuda_ipc)");
    } catch (...) {
      unmap_peers();
      met_->free_slots = false;
      throw;
    }
    if (std::all_of(reasons.begin(), reasons.end(), [](auto& why) { return why.empty(); })) return;
    unmap_peers();
    try {
      exchange(*request_.store, request_.rank, request_.size, "unmapped", "", request_.deadline,
               "unmap one another's memory (cuda_ipc)");
    } catch (const Error&) {
      met_->free_slots = false;
    }
    throw_first(reasons);
  }

  void unmap_peers() noexcept {
    for (BootstrapResult::Peer& peer : met_->peers) {
      if (peer.link.mapping != nullptr)
        met_->device->close(std::exchange(peer.link.mapping, nullptr));
    }
  }

  // Of one peer: for live work, and as many for captured work.
  std::size_t slot_bytes() const {
    return slot_stride(settings_.segment_bytes) * static_cast<std::size_t>(settings_.slots);
  }
  std::size_t all_slots_bytes() const { return 2 * index(request_.size - 1) * slot_bytes(); }
  // Offset of the slots for `peer` in the memory of `owner`, which has none for itself.
  std::size_t slots_offset(int owner, int peer) const {
    return 2 * index(peer < owner ? peer : peer - 1) * slot_bytes();
  }

  // Runs `body`; returns its error in one line, to be published.
  template <typename Body>
  std::string attempt(const Body& body) {
    try {
      body();
      return "";
    } catch (const std::exception& error) {
      return one_line(error.what());
    }
  }

  void make_own() {
    const auto size = static_cast<std::size_t>(request_.size);
    if (auto why = why_unusable(*settings_.driver); !why.empty())
      throw Error(ErrorCode::kUnavailable, kNoPeer, why);
    met_->device = std::make_unique<Device>(settings_.driver, settings_.device);
    const Device& device = *met_->device;
    if (size == 1) return;
    met_->own_words = std::make_unique<RegisteredWords>(
        device, posix::SharedMemory(size * kBlockBytes, posix::Pages::kPresent));
    met_->own_slots = device.allocate(all_slots_bytes());
    own_.uuid = device.uuid();
    own_.handle = device.export_memory(met_->own_slots);
  }

  void publish(const std::string& why) {
    own_.why = why;
    own_.process = settings_.process;
    own_.socket = listener_.name();
    own_.token = random_token();
    own_.segment_bytes = settings_.segment_bytes;
    own_.slots = settings_.slots;
    own_.device = settings_.device;
    own_.ring = reinterpret_cast<std::uint64_t>(met_->own_slots);
    const auto texts =
        exchange(*request_.store, request_.rank, request_.size, "address", to_text(own_),
                 request_.deadline, "publish their devices (cuda_ipc)");
    std::vector<std::string> reasons;
    for (int rank = 0; rank < request_.size; ++rank) {
      peer_addresses_.push_back(address_from_text(texts[index(rank)], rank));
      reasons.push_back(peer_addresses_.back().why);
    }
    throw_first(reasons);
  }

  // Throws the same error on all ranks, but a rank's own reason comes first.
  void throw_first(const std::vector<std::string>& reasons) const {
    int rank = reasons[index(request_.rank)].empty() ? 0 : request_.rank;
    while (rank < request_.size && reasons[index(rank)].empty()) ++rank;
    if (rank == request_.size) return;
    throw RefusedByAll(rank == request_.rank ? kNoPeer : rank,
                       by_rank(request_.rank, fmt::format("rank {} cannot use cuda_ipc: {}", rank,
                                                          reasons[index(rank)])));
  }

  void require_same_sizes() const {
    for (std::size_t peer = 0; peer < peer_addresses_.size(); ++peer) {
      if (peer_addresses_[peer].segment_bytes == settings_.segment_bytes &&
          peer_addresses_[peer].slots == settings_.slots)
        continue;
      throw Error(ErrorCode::kMismatch, static_cast<int>(peer),
                  fmt::format("rank {} has {} slots of {} bytes, rank {} has {} of {} (cuda_ipc): "
                              "give the same to every rank",
                              request_.rank, settings_.slots, settings_.segment_bytes, peer,
                              peer_addresses_[peer].slots, peer_addresses_[peer].segment_bytes));
    }
  }

  // --- exchange of memfds ---

  void hand_over() {
    const auto began = Clock::now();
    while (true) {
      call_peers();
      accept_peers();
      std::vector<int> missing;
      for (int peer = 0; peer < request_.size; ++peer) {
        const BootstrapResult::Peer& met = met_->peers[index(peer)];
        if (peer != request_.rank && (!met.called.is_open() || !met.accepted.is_open()))
          missing.push_back(peer);
      }
      if (missing.empty()) return pending_connections_.clear();
      if (const auto cause = request_.store->failure())
        throw Error(ErrorCode::kAborted, kNoPeer, *cause);
      const auto now = Clock::now();
      if (now >= request_.deadline) {
        throw Error(ErrorCode::kDeadline, missing.front(),
                    fmt::format("rank {}: waited {:.1f} s for {} to connect (cuda_ipc): "
                                "see their output",
                                request_.rank, std::chrono::duration<double>(now - began).count(),
                                name_ranks(missing)));
      }
      std::this_thread::sleep_for(kLookEvery);
    }
  }

  void call_peers() {
    for (int peer = 0; peer < request_.size; ++peer) {
      if (peer == request_.rank || met_->peers[index(peer)].called.is_open()) continue;
      if (calls_[index(peer)].is_open()) {
        hear_answer(peer);
      } else {
        call(peer);
      }
    }
  }

  void call(int peer) {
    auto socket = reach(peer);
    if (!socket) return;
    Hello hello;
    hello.token = peer_addresses_[index(peer)].token;
    hello.rank = request_.rank;
    if (posix::send_message(socket->get(), bytes_of(hello), met_->own_words->descriptor()))
      calls_[index(peer)] = std::move(*socket);
  }

  // Nothing while the peer's backlog is full.
  std::optional<posix::Descriptor> reach(int peer) {
    while (true) {
      try {
        return posix::connect_unix(peer_addresses_[index(peer)].socket);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kPeerLost) {
          throw Error(
              ErrorCode::kPeerLost, peer,
              fmt::format("rank {}: rank {} (cuda_ipc) is gone: its socket does not exist any "
                          "more; it has ended, and its own output may say why",
                          request_.rank, peer));
        }
        if (!pending_connections_.drop_oldest_silent()) throw_exhausted(error.what());
      }
    }
  }

  // If the peer drops this connection, as it does with the oldest unknown clients, connects again.
  void hear_answer(int peer) {
    posix::Descriptor& call = calls_[index(peer)];
    std::uint64_t said = 0;
    const auto message =
        posix::receive_message(call.get(), std::as_writable_bytes(std::span(&said, 1)));
    if (message.what == posix::Received::kNothing) return;
    const bool has_come = message.what == posix::Received::kMessage &&
                          message.bytes == sizeof said && said == own_.token;
    if (has_come) met_->peers[index(peer)].called = std::move(call);
    call.close();
  }

  void accept_peers() {
    pending_connections_.look(listener_);
    const std::string& why = pending_connections_.why_kept_out();
    if (!why.empty() && awaits_callers()) throw_exhausted(why);
  }

  bool awaits_callers() const {
    const auto open =
        std::ranges::count_if(met_->peers, [](auto& peer) { return peer.accepted.is_open(); });
    return open < request_.size - 1;
  }

  posix::PendingConnections::Handlers handlers() {
    posix::PendingConnections::Handlers handlers;
    handlers.hello_bytes = sizeof(Hello);
    handlers.is_hello = [this](auto said) { return is_for_this_rank(hello_in(said)); };
    handlers.let_in = [this](auto said, posix::Descriptor socket, posix::Descriptor words) {
      let_in(static_cast<int>(hello_in(said).rank), std::move(socket), std::move(words));
    };
    return handlers;
  }

  bool is_for_this_rank(const Hello& hello) const {
    return hello.magic == Hello{}.magic && hello.token == own_.token && hello.rank >= 0 &&
           hello.rank < request_.size && hello.rank != request_.rank;
  }

  void let_in(int rank, posix::Descriptor socket, posix::Descriptor words) {
    BootstrapResult::Peer& peer = met_->peers[index(rank)];
    if (peer.accepted.is_open() || !words.is_open()) return;
    if (!posix::send_message(socket.get(), bytes_of(peer_addresses_[index(rank)].token))) return;
    peer.accepted = std::move(socket);
    peer.passed = std::move(words);
  }

  [[noreturn]] void throw_exhausted(const std::string& why) const {
    throw Error(
        ErrorCode::kUnavailable, kNoPeer,
        fmt::format("rank {}: no file descriptor is left to connect to the other ranks ({}); "
                    "cuda_ipc needs three per peer while it connects",
                    request_.rank, why));
  }

  // --- devices ---

  void map_peers() {
    for (int peer = 0; peer < request_.size; ++peer) {
      if (peer != request_.rank) map_peer(peer);
    }
  }

  void require_reach(int peer) const {
    const EndpointAddress& address = peer_addresses_[index(peer)];
    const Device& device = *met_->device;
    const int theirs = device.find(address.uuid);
    if (theirs < 0) {
      throw Error(ErrorCode::kUnavailable, peer,
                  fmt::format("rank {}'s device ({}) is not visible to rank {}: give both the same "
                              "CUDA_VISIBLE_DEVICES, or use another transport",
                              peer, address.uuid, request_.rank));
    }
    if (!device.can_reach(theirs)) {
      throw Error(
          ErrorCode::kUnavailable, peer,
          fmt::format("{} of rank {} cannot reach device {} of rank {} (no peer access; see "
                      "nvidia-smi topo -p2p r): use another transport",
                      device.describe(), request_.rank, theirs, peer));
    }
    if (address.process == settings_.process) device.enable_peer(Device(settings_.driver, theirs));
  }

  void map_peer(int peer) {
    require_reach(peer);
    const EndpointAddress& address = peer_addresses_[index(peer)];
    BootstrapResult::Peer& met = met_->peers[index(peer)];
    posix::SharedMemory words(std::move(met.passed), index(request_.size) * kBlockBytes);
    words.forget_descriptor();
    met.words = std::make_unique<RegisteredWords>(*met_->device, std::move(words));
    Link& link = met.link;
    link.rank = request_.rank;
    link.peer = peer;
    link.is_same_process = address.process == settings_.process;
    link.is_same_device = address.uuid == own_.uuid;
    link.own = met_->own_words->block(peer);
    link.theirs = met.words->block(request_.rank);
    link.own_words = met_->own_words->address(peer);
    link.their_words = met.words->address(request_.rank);
    link.own_slots = met_->own_slots + slots_offset(request_.rank, peer);
    link.own_captured_slots = link.own_slots + slot_bytes();
    std::byte* ring = reinterpret_cast<std::byte*>(address.ring);
    if (!link.is_same_process) {
      ring = link.mapping =
          met_->device->open(address.handle, all_slots_bytes(), fmt::format("rank {}", peer));
    }
    link.their_slots = ring + slots_offset(peer, request_.rank);
    link.their_captured_slots = link.their_slots + slot_bytes();
    link.segment_bytes = settings_.segment_bytes;
    link.slots = static_cast<std::uint64_t>(settings_.slots);
  }

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  const TransportRequest& request_;
  const BootstrapSettings& settings_;
  posix::UnixListener listener_;
  posix::PendingConnections pending_connections_;
  std::vector<posix::Descriptor> calls_;  // by peer: connections without an answer yet
  EndpointAddress own_;
  std::vector<EndpointAddress> peer_addresses_;
  std::unique_ptr<BootstrapResult> met_ = std::make_unique<BootstrapResult>();
};

}  // namespace

RegisteredWords::RegisteredWords(const Device& device, posix::SharedMemory memory)
    : device_(device),
      memory_(std::make_shared<posix::SharedMemory>(std::move(memory))),
      address_(device.register_host(memory_->bytes())) {}

Block* RegisteredWords::block(int rank) const {
  return reinterpret_cast<Block*>(memory_->bytes().data() + offset(rank));
}

BootstrapResult::~BootstrapResult() {
  if (own_slots != nullptr && free_slots) device->free(own_slots);
}

std::unique_ptr<BootstrapResult> meet(const TransportRequest& request,
                                      const BootstrapSettings& settings) {
  return Meeting(request, settings).run();
}

}  // namespace kolo::inline v0::cuda
