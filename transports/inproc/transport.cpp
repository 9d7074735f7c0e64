// Shared state and synchronization of the inproc transport.
//
// A *room* is the state shared by the ranks: a ring for every ordered pair and a bell for every
// rank. The state of a *ring* is three values, each written by one side only:
//
//     sent      by the sender: segments committed so far
//     taken     by the receiver: segments released or answered so far
//     closed    by either side: its transport has ended (in the room, one per rank)
//
// The slot of segment s is s modulo the number of slots. The sender may write it once segment s -
// slots has been taken and, if that segment was to be answered, the sender has read the answer. The
// receiver may read it while sent > s.
//
// Sleep: a rank that wants to sleep sets its bell's flag and then checks all counts again. A rank
// that publishes a count checks the peer's bell afterwards. With a full fence in between on both
// sides, at least one of them sees the other's store (as in Dekker's algorithm).
#include "transports/inproc/transport.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "transports/base/aligned_memory.h"
#include "transports/base/check.h"
#include "transports/base/transport_kind.h"
#include "transports/error.h"
#include "transports/posix/event.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/host/streaming_copy.h"
#include "transports/store/all_gather.h"

namespace kolo::inline v0 {

namespace {

constexpr std::size_t kLine = kSegmentAlignment;

struct Ring {
  alignas(kLine) std::atomic<std::uint64_t> sent{0};
  alignas(kLine) std::atomic<std::uint64_t> taken{0};
  // Allocated by the sender before its first segment; published to the receiver by `sent`.
  alignas(kLine) AlignedMemory slots;
};

struct Bell {
  alignas(kLine) std::atomic<std::uint32_t> is_asleep{0};
  std::atomic<bool> is_closed{false};
  posix::Event event;

  // Call after a count has been published. True if this took a system call.
  bool ring_if_asleep() {
    // Read-modify-writes of one variable have a total order. Either this one sees the sleeper's
    // flag, or the sleeper's comes later and sees the published count. (A fence would do as well,
    // but the thread sanitizer does not support fences.)
    if (is_asleep.fetch_add(0, std::memory_order_acq_rel) == 0) [[likely]]
      return false;
    event.ring();
    return true;
  }
};

struct Room {
  Room(int room_size, const InprocSettings& room_settings)
      : size(static_cast<std::size_t>(room_size)),
        settings(room_settings),
        stride(slot_stride(room_settings.segment_bytes)),
        rings(size * size),
        bells(size) {}

  Ring& ring(int from, int to) {
    return rings[static_cast<std::size_t>(from) * size + static_cast<std::size_t>(to)];
  }
  Bell& bell(int rank) { return bells[static_cast<std::size_t>(rank)]; }

  const std::size_t size;
  const InprocSettings settings;
  const std::size_t stride;
  std::vector<Ring> rings;
  std::vector<Bell> bells;
};

class InprocChannel final : public Channel {
 public:
  InprocChannel(Room& room, int rank, int peer)
      : room_(room),
        rank_(rank),
        peer_(peer),
        slots_(static_cast<std::uint64_t>(room.settings.slots)),
        out_(room.ring(rank, peer)),
        in_(room.ring(peer, rank)),
        bell_(room.bell(peer)),
        is_owed_(slots_, false) {
    capabilities_.segment_bytes = room.settings.segment_bytes;
    capabilities_.preferred_segment_bytes = room.settings.segment_bytes;
    capabilities_.credit_segments = room.settings.slots;
    capabilities_.latency_us = 0.2;
    capabilities_.bandwidth_GBps = 20;
    capabilities_.can_answer = true;
  }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override {
    fail_if_quiesced();
    check(bytes <= capabilities_.segment_bytes,
          "a segment is longer than Capabilities::segment_bytes");
    check(!is_reserved_, "reserve() before the slot reserved last was committed");
    if (is_owed_[sent_ % slots_] || !has_free_slot()) {
      fail_if_lost("send to");
      return nullptr;
    }
    if (!out_.slots) allocate();
    is_reserved_ = true;
    reserved_bytes_ = bytes;
    return out_slot(sent_);
  }

  void commit(unsigned flags) override {
    require(is_reserved_, "commit() without a reserved slot");
    is_reserved_ = false;
    if ((flags & kAnswered) != 0) is_owed_[sent_ % slots_] = true;
    ++sent_;
    statistics_.bytes_sent += reserved_bytes_;
    ++statistics_.segments_sent;
    out_.sent.store(sent_, std::memory_order_release);
    if (bell_.ring_if_asleep()) ++statistics_.system_calls;
  }

  bool send(std::span<const std::byte> data, unsigned flags) override {
    std::byte* slot = reserve(data.size());
    if (slot == nullptr) return false;
    if (!data.empty()) std::memcpy(slot, data.data(), data.size());
    commit(flags);
    return true;
  }

  bool is_drained() override {  // send() copies
    fail_if_quiesced();
    return true;
  }

  const std::byte* view(std::size_t bytes) override { return view_to_answer(bytes); }

  void release() override {
    require(is_viewing_, "release() without a view");
    take();
  }

  bool receive(std::span<std::byte> into, unsigned flags) override {
    const std::byte* segment = view(into.size());
    if (segment == nullptr) return false;
    if ((flags & kCold) != 0) {
      posix::streaming_copy(into.data(), segment, into.size());
    } else if (!into.empty()) {
      std::memcpy(into.data(), segment, into.size());
    }
    release();
    return true;
  }

  std::byte* view_to_answer(std::size_t bytes) override {
    fail_if_quiesced();
    check(bytes <= capabilities_.segment_bytes,
          "a segment is longer than Capabilities::segment_bytes");
    if (is_viewing_) return in_slot(taken_);
    if (in_.sent.load(std::memory_order_acquire) == taken_) {
      fail_if_lost("receive from", in_.sent, taken_);
      return nullptr;
    }
    is_viewing_ = true;
    viewed_bytes_ = bytes;
    return in_slot(taken_);
  }

  void answer() override {
    require(is_viewing_, "answer() without a view");
    statistics_.bytes_sent += viewed_bytes_;
    take();
  }

  const std::byte* view_answer(std::size_t bytes) override {
    fail_if_quiesced();
    if (!find_owed()) return nullptr;
    const auto taken = out_.taken.load(std::memory_order_acquire);
    if (taken <= answer_) {
      fail_if_lost("get the answer of", out_.taken, taken);
      return nullptr;
    }
    answer_bytes_ = bytes;
    return out_slot(answer_);
  }

  void release_answer() override {
    require(is_owed_[answer_ % slots_], "release_answer() without an answer");
    is_owed_[answer_ % slots_] = false;
    statistics_.bytes_received += answer_bytes_;
    ++answer_;
  }

  // Clears all reservations and views, so that commit(), release() and so on fail in require() and
  // need no check of their own.
  void quiesce() {
    is_quiesced_ = true;
    is_reserved_ = is_viewing_ = false;
    std::fill(is_owed_.begin(), is_owed_.end(), false);
  }

  // For arm(): whether the peer has changed a count since the last call.
  bool has_news() {
    const auto arrived = in_.sent.load(std::memory_order_acquire);
    const auto freed = out_.taken.load(std::memory_order_acquire);
    const bool is_closed = bell_.is_closed.load(std::memory_order_acquire);
    const bool is_new =
        arrived != seen_arrived_ || freed != seen_freed_ || is_closed != seen_closed_;
    seen_arrived_ = arrived;
    seen_freed_ = freed;
    seen_closed_ = is_closed;
    return is_new;
  }

 private:
  bool has_free_slot() {
    if (sent_ - freed_ < slots_) return true;
    freed_ = out_.taken.load(std::memory_order_acquire);
    return sent_ - freed_ < slots_;
  }

  void allocate() { out_.slots = allocate_aligned(room_.stride * slots_); }

  std::byte* out_slot(std::uint64_t segment) {
    return out_.slots.get() + (segment % slots_) * room_.stride;
  }
  std::byte* in_slot(std::uint64_t segment) {
    return in_.slots.get() + (segment % slots_) * room_.stride;
  }

  void take() {
    is_viewing_ = false;
    ++taken_;
    statistics_.bytes_received += viewed_bytes_;
    ++statistics_.segments_received;
    in_.taken.store(taken_, std::memory_order_release);
    if (bell_.ring_if_asleep()) ++statistics_.system_calls;
  }

  // Moves answer_ to the oldest segment that is to be answered.
  bool find_owed() {
    if (sent_ - answer_ > slots_) answer_ = sent_ - slots_;  // older ones needed no answer
    while (answer_ < sent_ && !is_owed_[answer_ % slots_]) ++answer_;
    return answer_ < sent_;
  }

  void require(bool is_in_hand, const char* wrong) const {
    if (is_in_hand) [[likely]]
      return;
    fail_if_quiesced();
    fail_check(wrong);
  }

  void fail_if_quiesced() const {
    if (!is_quiesced_) return;
    throw Error(ErrorCode::kAborted, kNoPeer,
                fmt::format("rank {}: this transport was closed", rank_));
  }

  void fail_if_lost(const char* operation) const {
    if (!bell_.is_closed.load(std::memory_order_acquire)) return;
    throw Error(ErrorCode::kPeerLost, peer_,
                fmt::format("rank {}: cannot {} rank {} (inproc): its thread has closed its "
                            "transport; see the error of rank {}",
                            rank_, operation, peer_, peer_));
  }

  // As above, but not if the count has changed: data from before the peer's end is still valid.
  void fail_if_lost(const char* operation, const std::atomic<std::uint64_t>& count,
                    std::uint64_t known) const {
    const bool is_closed = bell_.is_closed.load(std::memory_order_acquire);
    if (is_closed && count.load(std::memory_order_acquire) == known) fail_if_lost(operation);
  }

  Room& room_;
  const int rank_;
  const int peer_;
  const std::uint64_t slots_;
  Ring& out_;
  Ring& in_;
  Bell& bell_;  // the peer's
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  bool is_quiesced_ = false;

  std::uint64_t sent_ = 0;     // this side's copy of out_.sent
  std::uint64_t freed_ = 0;    // cached out_.taken
  std::uint64_t answer_ = 0;   // no segment before this one waits for an answer
  std::vector<bool> is_owed_;  // per slot: the answer to its segment has not been read
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;
  std::size_t answer_bytes_ = 0;

  std::uint64_t taken_ = 0;  // this side's copy of in_.taken
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;

  std::uint64_t seen_arrived_ = 0;
  std::uint64_t seen_freed_ = 0;
  bool seen_closed_ = false;
};

class InprocTransport final : public Transport {
 public:
  InprocTransport(std::shared_ptr<Room> room, int rank) : room_(std::move(room)), rank_(rank) {
    for (int peer = 0; peer < size(); ++peer) {
      channels_.push_back(peer == rank ? nullptr
                                       : std::make_unique<InprocChannel>(*room_, rank, peer));
    }
  }

  ~InprocTransport() override { quiesce(); }

  std::string_view name() const override { return "inproc"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(room_->size); }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < size() && peer != rank_, "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {}  // each call makes all possible progress itself

  int descriptor() const override { return room_->bell(rank_).event.descriptor(); }

  bool arm() override {
    if (own_bell().is_closed.load(std::memory_order_relaxed)) return false;
    own_bell().is_asleep.exchange(1, std::memory_order_acq_rel);
    bool is_new = false;
    for (const auto& channel : channels_) is_new |= channel && channel->has_news();
    if (is_new) disarm();
    return !is_new;
  }

  void disarm() override {
    own_bell().is_asleep.store(0, std::memory_order_relaxed);
    own_bell().event.silence();
  }

  void quiesce() noexcept override {
    if (own_bell().is_closed.exchange(true)) return;
    for (const auto& channel : channels_) {
      if (channel) channel->quiesce();
    }
    for (Bell& bell : room_->bells) bell.ring_if_asleep();
  }

 private:
  Bell& own_bell() { return room_->bell(rank_); }

  std::shared_ptr<Room> room_;
  const int rank_;
  std::vector<std::unique_ptr<InprocChannel>> channels_;
};

// Ticket for the room, without a global table: rank 0 makes one ticket (a shared_ptr on the heap)
// per rank and publishes its address. The first rank to increment a ticket's counter owns it: the
// ticket's rank, or rank 0 after a timeout.
using Ticket = std::shared_ptr<Room>;

bool claim(Store& store, int rank) { return store.add(fmt::format("claim/{}", rank), 1) == 1; }

class Tickets {
 public:
  Tickets(Store& store, const std::shared_ptr<Room>& room) : store_(store) {
    for (std::size_t rank = 1; rank < room->size; ++rank)
      tickets_.push_back(std::make_unique<Ticket>(room));
    std::string text = posix::process_identity() + "\n" + posix::host_name() + "\n";
    for (const auto& ticket : tickets_)
      text += fmt::format("{} ", reinterpret_cast<std::uintptr_t>(ticket.get()));
    store.set("room", text);
  }

  // Frees only tickets that were not claimed; claimed ones belong to other ranks.
  ~Tickets() {
    for (std::size_t i = 0; i < tickets_.size(); ++i) {
      if (!claim_for_disposal(static_cast<int>(i) + 1)) static_cast<void>(tickets_[i].release());
    }
  }

  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;

 private:
  // If the store fails, a ticket leaks, as freeing one in use would be worse.
  bool claim_for_disposal(int rank) noexcept {
    try {
      return claim(store_, rank);
    } catch (const std::exception&) {
      return false;
    }
  }

  Store& store_;
  std::vector<std::unique_ptr<Ticket>> tickets_;
};

std::shared_ptr<Room> take_ticket(Store& store, int rank, const std::string& text) {
  const auto line = text.find('\n');
  const auto second = text.find('\n', line + 1);
  check(line != std::string::npos && second != std::string::npos,
        "inproc: unreadable room in the store");
  if (text.substr(0, line) != posix::process_identity()) {
    throw Error(
        ErrorCode::kUnavailable, 0,
        fmt::format("rank {} is in a different process than rank 0: inproc connects threads of "
                    "one process only; use shm or tcp",
                    rank));
  }
  if (!claim(store, rank)) {
    throw Error(ErrorCode::kDeadline, 0,
                fmt::format("rank {}: rank 0 gave up waiting for this rank (inproc)", rank));
  }
  std::size_t position = second + 1;
  for (int i = 1; i < rank; ++i) position = text.find(' ', position) + 1;
  const auto address = static_cast<std::uintptr_t>(std::stoull(text.substr(position)));
  const std::unique_ptr<Ticket> ticket(reinterpret_cast<Ticket*>(address));
  return *ticket;
}

std::unique_ptr<Transport> make(const TransportRequest& request) {
  InprocSettings settings;
  if (request.segment_bytes != 0) settings.segment_bytes = request.segment_bytes;
  return make_inproc(request, settings);
}

}  // namespace

std::unique_ptr<Transport> make_inproc(const TransportRequest& request,
                                       const InprocSettings& settings) {
  check(request.rank >= 0 && request.rank < request.size, "a rank must be from 0 to size - 1");
  check(request.store != nullptr, "a transport needs a store");
  check(settings.slots >= kMinimumCredit, "inproc needs at least kMinimumCredit slots");
  Store& store = *request.store;
  std::shared_ptr<Room> room;
  std::unique_ptr<Tickets> tickets;
  if (request.rank == 0) {
    room = std::make_shared<Room>(request.size, settings);
    tickets = std::make_unique<Tickets>(store, room);
  } else {
    room = take_ticket(store, request.rank, store.get("room", request.deadline));
  }
  exchange(store, request.rank, request.size, "here", "", request.deadline, "connect (inproc)");
  return std::make_unique<InprocTransport>(std::move(room), request.rank);
}

TransportKind inproc_transport() { return {"inproc", Reach::kProcess, nullptr, make}; }

}  // namespace kolo::inline v0
