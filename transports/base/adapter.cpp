// Outgoing segments are in a ring of places. A segment is put into the next place (its slot, or the
// caller's memory). The plain channel takes the places in order. A place is free again when the
// plain channel has completed its segment.
//
//     completed <= taken <= placed <= completed + kPlaces
#include "transports/base/adapter.h"

#include <fmt/format.h>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "transports/base/aligned_memory.h"
#include "transports/base/check.h"
#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

constexpr std::uint64_t kPlaces = kMinimumCredit;

// The message for a segment of no bytes, since plain channels need not support empty ones.
constexpr std::byte kNothing{0};

class AdaptedChannel final : public Channel {
 public:
  AdaptedChannel(PlainChannel& plain, const AdapterSettings& settings, int peer)
      : plain_(plain), rank_(settings.rank), peer_(peer) {
    capabilities_.segment_bytes = settings.segment_bytes;
    capabilities_.preferred_segment_bytes = settings.segment_bytes;
  }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }

  std::byte* reserve(std::size_t bytes) override {
    fail_if_quiesced();
    check(bytes <= capabilities_.segment_bytes,
          "a segment is longer than Capabilities::segment_bytes");
    check(!is_reserved_, "reserve() before the slot reserved last was committed");
    if (!has_place()) return nullptr;
    is_reserved_ = true;
    reserved_bytes_ = bytes;
    return slot();
  }

  void commit(unsigned flags) override {
    fail_if_quiesced();
    check(is_reserved_, "commit() without a reserved slot");
    is_reserved_ = false;
    put({slot(), reserved_bytes_}, flags);
  }

  bool send(std::span<const std::byte> data, unsigned flags) override {
    check(data.size() <= capabilities_.segment_bytes,
          "a segment is longer than Capabilities::segment_bytes");
    if (!has_place()) return false;
    put(data, flags);
    return true;
  }

  bool is_drained() override {
    push();
    return plain_.completed() == placed_;
  }

  const std::byte* view(std::size_t bytes) override {
    fail_if_quiesced();
    check(bytes <= capabilities_.segment_bytes,
          "a segment is longer than Capabilities::segment_bytes");
    if (is_viewing_) return view_.get();
    if (!view_) view_ = allocate_aligned(slot_stride(capabilities_.segment_bytes));
    if (!arrived({view_.get(), bytes})) return nullptr;
    is_viewing_ = true;
    viewed_bytes_ = bytes;
    return view_.get();
  }

  void release() override {
    fail_if_quiesced();
    check(is_viewing_, "release() without a view");
    is_viewing_ = false;
    count_received(viewed_bytes_);
  }

  bool receive(std::span<std::byte> into, unsigned /*flags*/) override {
    fail_if_quiesced();
    check(!is_viewing_, "receive() before the view was released");
    if (!arrived(into)) return false;
    count_received(into.size());
    return true;
  }

  // Passes placed segments to the plain channel, as far as it accepts them.
  void push() {
    fail_if_quiesced();
    while (taken_ < placed_ && plain_.send(places_[taken_ % kPlaces])) ++taken_;
  }

  void quiesce() { is_quiesced_ = true; }

 private:
  void fail_if_quiesced() const {
    if (!is_quiesced_) return;
    throw Error(ErrorCode::kAborted, kNoPeer,
                fmt::format("rank {}: this transport was closed", rank_));
  }

  bool has_place() {
    push();
    return placed_ - plain_.completed() < kPlaces;
  }

  std::byte* slot() {
    const std::size_t stride = slot_stride(capabilities_.segment_bytes);
    if (!slots_) slots_ = allocate_aligned(stride * kPlaces);
    return slots_.get() + (placed_ % kPlaces) * stride;
  }

  void put(std::span<const std::byte> data, unsigned flags) {
    check((flags & kAnswered) == 0,
          "this channel takes no answers: ask Capabilities::can_answer first");
    statistics_.bytes_sent += data.size();
    ++statistics_.segments_sent;
    places_[placed_ % kPlaces] = data.empty() ? std::span(&kNothing, 1) : data;
    ++placed_;
    push();
  }

  bool arrived(std::span<std::byte> into) {
    push();  // the peer may wait for a segment that is still here
    std::byte nothing{};
    return plain_.receive(into.empty() ? std::span(&nothing, 1) : into);
  }

  void count_received(std::size_t bytes) {
    statistics_.bytes_received += bytes;
    ++statistics_.segments_received;
  }

  PlainChannel& plain_;
  const int rank_;
  const int peer_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  bool is_quiesced_ = false;

  std::array<std::span<const std::byte>, kPlaces> places_{};
  std::uint64_t placed_ = 0;
  std::uint64_t taken_ = 0;
  AlignedMemory slots_;
  bool is_reserved_ = false;
  std::size_t reserved_bytes_ = 0;

  AlignedMemory view_;
  bool is_viewing_ = false;
  std::size_t viewed_bytes_ = 0;
};

class AdaptedTransport final : public Transport {
 public:
  AdaptedTransport(std::unique_ptr<PlainTransport> plain, const AdapterSettings& settings)
      : plain_(std::move(plain)), settings_(settings) {
    for (int peer = 0; peer < settings.size; ++peer) {
      channels_.push_back(peer == settings.rank ? nullptr
                                                : std::make_unique<AdaptedChannel>(
                                                      plain_->channel(peer), settings, peer));
    }
  }

  ~AdaptedTransport() override { quiesce(); }

  std::string_view name() const override { return settings_.name; }
  int rank() const override { return settings_.rank; }
  int size() const override { return settings_.size; }

  Channel& channel(int peer) override {
    check(peer >= 0 && peer < settings_.size && peer != settings_.rank, "no channel to this rank");
    return *channels_[static_cast<std::size_t>(peer)];
  }

  void progress() override {
    if (is_quiesced_) return;
    plain_->progress();
    for (const auto& channel : channels_) {
      if (channel) channel->push();
    }
  }

  // After quiesce the plain transport is not called again.
  int descriptor() const override { return is_quiesced_ ? -1 : plain_->descriptor(); }
  bool arm() override { return !is_quiesced_ && plain_->arm(); }
  void disarm() override {
    if (!is_quiesced_) plain_->disarm();
  }

  void quiesce() noexcept override {
    if (std::exchange(is_quiesced_, true)) return;
    plain_->quiesce();
    for (const auto& channel : channels_) {
      if (channel) channel->quiesce();
    }
  }

 private:
  std::unique_ptr<PlainTransport> plain_;
  const AdapterSettings settings_;
  std::vector<std::unique_ptr<AdaptedChannel>> channels_;
  bool is_quiesced_ = false;
};

}  // namespace

std::unique_ptr<Transport> adapt(std::unique_ptr<PlainTransport> plain,
                                 const AdapterSettings& settings) {
  check(plain != nullptr, "adapt: there must be a plain transport");
  return std::make_unique<AdaptedTransport>(std::move(plain), settings);
}

}  // namespace kolo::inline v0
