#include "transports/decorators/shaped_channel.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "transports/base/check.h"
#include "transports/decorators/splitmix64.h"
#include "transports/error.h"

namespace kolo::inline v0::decorators {

namespace {

using std::chrono::nanoseconds;

// Limit of a sender ahead of its wire: long enough that the wire stays busy while the sender is
// preempted. (Socket buffers of a kernel hold as much.)
constexpr auto kAhead = std::chrono::milliseconds(10);
constexpr std::size_t kMostAhead = std::size_t{16} << 20;

constexpr std::size_t kLeastWindowSegments = 8;
// Used without a rate, as the bytes in flight are unknown then.
constexpr std::size_t kWindowWithoutRate = std::size_t{64} << 20;

// Smallest charge of a segment against the window, as its bookkeeping takes memory, too.
constexpr std::size_t kLeastCharge = 1024;
constexpr std::size_t kSmallBytes = 4096;

std::size_t charge(std::size_t bytes) { return std::max(bytes, kLeastCharge); }

std::size_t bytes_in(const ShapedPath& path, nanoseconds time) {
  const std::chrono::duration<double> seconds = time;
  return static_cast<std::size_t>(static_cast<double>(path.bytes_per_second) * seconds.count());
}

std::size_t ahead_bytes(const ShapedPath& path) {
  return path.bytes_per_second == 0 ? kMostAhead : std::min(bytes_in(path, kAhead), kMostAhead);
}

std::size_t window_bytes(const ShapedPath& out, const ShapedPath& in, std::size_t segment_bytes) {
  std::size_t most = kLeastWindowSegments * segment_bytes;
  for (const ShapedPath& path : {out, in}) {
    const auto time = path.delay + path.jitter;
    const bool has_rate = path.bytes_per_second != 0;
    const std::size_t in_flight = has_rate           ? bytes_in(path, time) + 2 * ahead_bytes(path)
                                  : time.count() > 0 ? kWindowWithoutRate
                                                     : 0;
    most = std::max(most, in_flight);
  }
  return most;
}

nanoseconds jitter_of(const ShapedChannelSetup& setup, int peer, std::uint64_t number) {
  const auto most = static_cast<std::uint64_t>(setup.out.jitter.count());
  if (most == 0) return nanoseconds(0);
  return nanoseconds(
      static_cast<std::int64_t>(mixed(setup.seed, setup.rank, peer, number) % (most + 1)));
}

std::size_t shelf_of(std::size_t bytes) {
  return static_cast<std::size_t>(std::bit_width(std::max(bytes, kSmallBytes) - 1));
}

constexpr std::int64_t count_of(Clock::time_point time) {
  return std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
}

Clock::time_point time_of(std::int64_t count) { return Clock::time_point(nanoseconds(count)); }

}  // namespace

// --- the pool ---

AlignedMemory SegmentPool::take(std::size_t bytes) {
  auto& memories = shelves_[shelf_of(bytes)];
  if (memories.empty()) return allocate_aligned(slot_stride(std::size_t{1} << shelf_of(bytes)));
  AlignedMemory memory = std::move(memories.back());
  memories.pop_back();
  return memory;
}

void SegmentPool::give_back(AlignedMemory memory, std::size_t bytes) {
  shelves_[shelf_of(bytes)].push_back(std::move(memory));
}

// --- the channel ---

ShapedChannel::ShapedChannel(Channel& inner, const ShapedChannelSetup& setup, SegmentPool& pool,
                             ShapingEvents& agenda)
    : inner_(inner),
      expecting_(dynamic_cast<PrepostedReceives*>(&inner)),
      setup_(setup),
      pool_(pool),
      events_(agenda),
      own_out_(setup.out.bytes_per_second, setup.out.burst_bytes),
      out_wire_(setup.out_wire != nullptr ? *setup.out_wire : own_out_),
      in_wire_(setup.in_wire != nullptr ? *setup.in_wire : own_in_),
      ahead_bytes_(ahead_bytes(setup.out)),
      window_bytes_(
          window_bytes(setup.out, setup.in, inner.capabilities().preferred_segment_bytes)),
      piece_bytes_(inner.capabilities().preferred_segment_bytes) {
  const Capabilities& below = inner.capabilities();
  capabilities_.segment_bytes = std::max(below.segment_bytes, setup.longest_segment_bytes);
  // As below: shaped and unshaped pairs must cut segments alike, as all ranks agree on lengths.
  capabilities_.preferred_segment_bytes = below.preferred_segment_bytes;
  capabilities_.straight_segment_bytes = below.straight_segment_bytes;
  capabilities_.shortest_segment_bytes = below.shortest_segment_bytes;
  capabilities_.credit_segments =
      std::max(kMinimumCredit, static_cast<int>(ahead_bytes_ / piece_bytes_));
  capabilities_.latency_us =
      below.latency_us + std::chrono::duration<double, std::micro>(setup.out.delay).count();
  capabilities_.bandwidth_GBps = below.bandwidth_GBps;
  const double rate_GBps = static_cast<double>(setup.out.bytes_per_second) * 1e-9;
  if (rate_GBps > 0)
    capabilities_.bandwidth_GBps = std::min(capabilities_.bandwidth_GBps, rate_GBps);
}

const ChannelStatistics& ShapedChannel::statistics() const {
  statistics_.system_calls = inner_.statistics().system_calls;
  statistics_.connections = inner_.statistics().connections;
  return statistics_;
}

void ShapedChannel::fail_if_quiesced() const {
  if (!is_quiesced_) return;
  throw Error(ErrorCode::kAborted, kNoPeer,
              fmt::format("rank {}: this transport was closed", setup_.rank));
}

void ShapedChannel::check_length(std::size_t bytes) const {
  check(bytes <= capabilities_.segment_bytes,
        "a segment is longer than Capabilities::segment_bytes");
}

void ShapedChannel::progress() noexcept {
  if (is_quiesced_) return;
  try_to(&ShapedChannel::push, out_lost_);
  // Only if connected: a receive would connect the pair, and so finally all pairs.
  if (inner_.is_connected()) try_to(&ShapedChannel::pull, in_lost_);
}

void ShapedChannel::try_to(void (ShapedChannel::*move)(), std::exception_ptr& lost) noexcept {
  if (lost) return;
  try {
    (this->*move)();
  } catch (...) {
    lost = std::current_exception();
    events_.wake_at(Clock::time_point{});  // wakes a waiting rank, so that it gets the error
  }
}

void ShapedChannel::fail_if_out_is_lost() const {
  if (out_lost_) std::rethrow_exception(out_lost_);
}

// --- sending ---

bool ShapedChannel::has_credit(std::size_t bytes) {
  push();
  constexpr std::size_t kLeast = kMinimumCredit;
  if (queue_.size() >= kLeast && queued_bytes_ + charge(bytes) > window_bytes_) return false;
  if (leaving_.empty()) return true;
  const auto now = events_.now();
  while (!leaving_.empty() && leaving_.front().last <= now) {
    leaving_bytes_ -= leaving_.front().bytes;
    leaving_.pop_front();
  }
  if (leaving_.size() < kLeast || leaving_bytes_ + charge(bytes) <= ahead_bytes_) return true;
  if (refused_until_ != leaving_.front().last) {
    refused_until_ = leaving_.front().last;
    events_.wake_at(refused_until_);
  }
  return false;
}

std::byte* ShapedChannel::reserve(std::size_t bytes) {
  fail_if_quiesced();
  fail_if_out_is_lost();
  check_length(bytes);
  check(!is_reserved_, "reserve() before the slot reserved last was committed");
  if (!has_credit(bytes)) return nullptr;
  slot_ = pool_.take(bytes);
  is_reserved_ = true;
  reserved_bytes_ = bytes;
  return slot_.get();
}

void ShapedChannel::commit(unsigned flags) {
  fail_if_quiesced();
  check(is_reserved_, "commit() without a reserved slot");
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  is_reserved_ = false;
  queued_bytes_ += charge(reserved_bytes_);
  queue_.push_back({depart(reserved_bytes_), std::move(slot_), flags});
  push();
}

bool ShapedChannel::send(std::span<const std::byte> data, unsigned flags) {
  fail_if_quiesced();
  fail_if_out_is_lost();
  check_length(data.size());
  check(!is_reserved_, "send() while a slot is reserved");
  check((flags & kAnswered) == 0,
        "this channel takes no answers: ask Capabilities::can_answer first");
  if (!has_credit(data.size())) return false;
  const Header header = depart(data.size());
  if (queue_.empty()) {
    is_header_out_ = push_header(header);
    if (is_header_out_ && push_bytes(data, flags)) return true;
  }
  AlignedMemory memory = pool_.take(data.size());
  if (!data.empty()) std::memcpy(memory.get(), data.data(), data.size());
  queued_bytes_ += charge(data.size());
  queue_.push_back({header, std::move(memory), flags});
  return true;
}

bool ShapedChannel::is_drained() {
  fail_if_quiesced();
  fail_if_out_is_lost();
  push();
  return queue_.empty() && inner_.is_drained();
}

// Computes when the segment arrives.
ShapedChannel::Header ShapedChannel::depart(std::size_t bytes) {
  const auto now = events_.now();
  const TransitTimes leaves = out_wire_.pass({now, now}, bytes);
  if (leaves.last > now) {
    leaving_.push_back({leaves.last, charge(bytes)});
    leaving_bytes_ += charge(bytes);
  }
  const nanoseconds flight = setup_.out.delay + jitter_of(setup_, peer(), number_++);
  const auto last = std::max(leaves.last + flight, comes_after_);
  const auto first = std::min(leaves.first + flight, last);
  comes_after_ = last;
  statistics_.bytes_sent += bytes;
  ++statistics_.segments_sent;
  return {count_of(first), count_of(last), flight.count(), bytes};
}

bool ShapedChannel::push_header(const Header& header) {
  std::byte* slot = inner_.reserve(sizeof(header));
  if (slot == nullptr) return false;
  std::memcpy(slot, &header, sizeof(header));
  inner_.commit(header.bytes > 0 ? kMore : kPlain);
  return true;
}

// Sends the rest of `data`; true once all of it has been sent.
bool ShapedChannel::push_bytes(std::span<const std::byte> data, unsigned flags) {
  while (pushed_bytes_ < data.size()) {
    const std::size_t bytes = std::min(piece_bytes_, data.size() - pushed_bytes_);
    std::byte* slot = inner_.reserve(bytes);
    if (slot == nullptr) return false;
    std::memcpy(slot, data.data() + pushed_bytes_, bytes);
    pushed_bytes_ += bytes;
    inner_.commit(pushed_bytes_ < data.size() ? flags | kMore : flags);
  }
  pushed_bytes_ = 0;
  is_header_out_ = false;
  return true;
}

void ShapedChannel::push() {
  while (!queue_.empty()) {
    Queued& next = queue_.front();
    const auto bytes = static_cast<std::size_t>(next.header.bytes);
    is_header_out_ = is_header_out_ || push_header(next.header);
    if (!is_header_out_ || !push_bytes({next.memory.get(), bytes}, next.flags)) return;
    queued_bytes_ -= charge(bytes);
    pool_.give_back(std::move(next.memory), bytes);
    queue_.pop_front();
  }
}

// --- receiving ---

bool ShapedChannel::has_room() const {
  return held_.size() < kMinimumCredit || held_bytes_ < window_bytes_;
}

// Whether these bytes can be a header, not data of a peer without a shape: the times are in order,
// and near enough that nothing overflows.
bool ShapedChannel::is_header(const Header& header) const {
  constexpr std::int64_t kDay = count_of(Clock::time_point(std::chrono::hours(24)));
  return header.bytes <= capabilities_.segment_bytes && header.first_ns >= 0 &&
         header.last_ns >= header.first_ns && header.last_ns - header.first_ns < kDay &&
         header.flight_ns >= 0 && header.flight_ns < kDay &&
         (!setup_.has_same_clock || header.last_ns - kDay < count_of(events_.now()));
}

void ShapedChannel::pull() {
  while (has_room()) {
    if (!has_header_) {
      if (!inner_.receive(std::as_writable_bytes(std::span(&header_, 1)))) return;
      if (!is_header(header_)) {
        throw Error(ErrorCode::kProtocol, peer(),
                    fmt::format("rank {}: rank {} sent a segment without a shape's header: set "
                                "KOLO_SHAPE on every rank",
                                setup_.rank, peer()));
      }
      has_header_ = true;
      arriving_ = pool_.take(header_.bytes);
    }
    if (!pull_bytes()) return;
    const auto bytes = static_cast<std::size_t>(header_.bytes);
    TransitTimes comes{time_of(header_.first_ns), time_of(header_.last_ns)};
    if (!setup_.has_same_clock) {
      const auto last = events_.now() + nanoseconds(header_.flight_ns);
      comes = {last - (comes.last - comes.first), last};
    }
    held_.push_back({bytes, std::move(arriving_), comes, {}});
    held_bytes_ += charge(bytes);
    events_.comes(*this, comes);
  }
}

// Receives the bytes of the segment whose header has arrived; true once it has all of them.
bool ShapedChannel::pull_bytes() {
  while (arrived_bytes_ < header_.bytes) {
    const auto piece = arriving_piece(arrived_bytes_);
    if (!inner_.receive(piece)) {
      expect_pieces();
      return false;
    }
    arrived_bytes_ += piece.size();
  }
  arrived_bytes_ = 0;
  has_header_ = false;
  return true;
}

std::span<std::byte> ShapedChannel::arriving_piece(std::size_t from) const {
  return {arriving_.get() + from,
          std::min(piece_bytes_, static_cast<std::size_t>(header_.bytes) - from)};
}

// Preposts receives for the next pieces of the arriving segment. Later segments are still unknown,
// as their headers have not arrived.
void ShapedChannel::expect_pieces() {
  if (expecting_ == nullptr) return;
  std::size_t from = arrived_bytes_;
  for (std::size_t ahead = 0; from < header_.bytes && ahead <= expecting_->expected_segments();
       ++ahead, from += piece_bytes_) {
    if (!expecting_->expect(ahead, arriving_piece(from))) return;
  }
}

Clock::time_point ShapedChannel::admit() {
  Held& next = held_[admitted_++];
  next.due = in_wire_.pass(next.comes, next.bytes).last;
  return next.due;
}

// Returns the next segment if it is due, otherwise null.
ShapedChannel::Held* ShapedChannel::front() {
  fail_if_quiesced();
  progress();
  if (!inner_.is_connected()) try_to(&ShapedChannel::pull, in_lost_);
  if (admitted_ == 0 && !held_.empty()) events_.admit_due();
  const auto is_due = [this] { return admitted_ > 0 && held_.front().due <= events_.now(); };
  if (is_due()) return &held_.front();
  if (held_.empty() && in_lost_) std::rethrow_exception(in_lost_);
  return nullptr;
}

const std::byte* ShapedChannel::view(std::size_t bytes) {
  fail_if_quiesced();
  check_length(bytes);
  if (is_viewing_) return held_.front().memory.get();
  Held* next = front();
  if (next == nullptr) return nullptr;
  if (next->bytes != bytes) {
    throw Error(ErrorCode::kMismatch, peer(),
                fmt::format("rank {}: rank {} sent a segment of {} bytes where {} were expected",
                            setup_.rank, peer(), next->bytes, bytes));
  }
  is_viewing_ = true;
  return next->memory.get();
}

void ShapedChannel::release() {
  fail_if_quiesced();
  check(is_viewing_, "release() without a view");
  is_viewing_ = false;
  Held& done = held_.front();
  statistics_.bytes_received += done.bytes;
  ++statistics_.segments_received;
  held_bytes_ -= charge(done.bytes);
  pool_.give_back(std::move(done.memory), done.bytes);
  held_.pop_front();
  --admitted_;
}

bool ShapedChannel::receive(std::span<std::byte> into, unsigned /*flags*/) {
  fail_if_quiesced();
  check(!is_viewing_, "receive() before the view was released");
  const std::byte* segment = view(into.size());
  if (segment == nullptr) return false;
  if (!into.empty()) std::memcpy(into.data(), segment, into.size());
  release();
  return true;
}

}  // namespace kolo::inline v0::decorators
