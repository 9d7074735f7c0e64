#include "transports/base/staged.h"

#include <fmt/format.h>
#include <exception>
#include <utility>

#include "transports/base/check.h"
#include "transports/cuda/chosen_device.h"
#include "transports/cuda/library.h"
#include "transports/cuda/shutdown.h"
#include "transports/cuda/staged_stream.h"
#include "transports/decorators/forwarding.h"
#include "transports/error.h"

namespace kolo::inline v0 {

namespace {

using cuda::StagedStream;
using cuda::Staging;

// Memory and state used by streams. It may outlive the transport.
struct InUse final : cuda::KeptUntilExit {
  InUse(std::shared_ptr<cuda::Driver> driver, int device) : staging(std::move(driver), device) {}
  Staging staging;
};

// Host form and stream form share a channel. The form that is called first goes first, and the
// other one returns "not now" meanwhile.
class StagedChannel final : public decorators::ForwardingChannel {
 public:
  StagedChannel(Channel& host, Staging& staging) : ForwardingChannel(host), staging_(staging) {}

  StreamChannel* stream() override {
    if (stream_ == nullptr) {
      staging_.streams.push_back(std::make_unique<StagedStream>(staging_, inner()));
      stream_ = staging_.streams.back().get();
    }
    return stream_;
  }

  // --- out ---

  std::byte* reserve(std::size_t bytes) override {
    if (!is_out_idle()) return nullptr;
    std::byte* const slot = inner().reserve(bytes);
    has_slot_ = slot != nullptr;
    return slot;
  }
  void commit(unsigned flags) override {
    has_slot_ = false;
    inner().commit(flags);
  }
  bool send(std::span<const std::byte> data, unsigned flags) override {
    return is_out_idle() && inner().send(data, flags);
  }
  bool is_drained() override { return is_out_idle() && inner().is_drained(); }

  // --- in ---

  const std::byte* view(std::size_t bytes) override {
    if (!is_in_idle()) return nullptr;
    const std::byte* const segment = inner().view(bytes);
    is_receiving_ = segment != nullptr;
    return segment;
  }
  void release() override {
    inner().release();
    is_receiving_ = false;
  }
  bool receive(std::span<std::byte> into, unsigned flags) override {
    if (!is_in_idle()) return false;
    const bool is_whole = inner().receive(into, flags);
    is_receiving_ = !is_whole;
    return is_whole;
  }
  std::byte* view_to_answer(std::size_t bytes) override {
    if (!is_in_idle()) return nullptr;
    std::byte* const segment = inner().view_to_answer(bytes);
    is_receiving_ = segment != nullptr;
    return segment;
  }
  void answer() override {
    inner().answer();
    is_receiving_ = false;
  }

  // --- for the transport ---

  bool pump() { return stream_ != nullptr && stream_->pump(!has_slot_, !is_receiving_); }
  bool watches_device() const { return stream_ != nullptr && stream_->watches_device(); }
  // Whether all data that its stream handed over have left.
  bool has_left() {
    return stream_ == nullptr || stream_->is_unused() ||
           (stream_->has_sent_all_handed() && inner().is_drained());
  }

 private:
  // After quiesce the channel below throws.
  bool is_out_idle() const {
    return stream_ == nullptr || staging_.is_closed || stream_->is_out_idle();
  }
  bool is_in_idle() const {
    return stream_ == nullptr || staging_.is_closed || stream_->is_in_idle();
  }

  Staging& staging_;
  StagedStream* stream_ = nullptr;
  bool has_slot_ = false;      // of the host's own form
  bool is_receiving_ = false;  // by the host's own form: a view, or an incomplete receive
};

class StagedTransport final : public decorators::ForwardingTransport<StagedChannel> {
 public:
  StagedTransport(std::unique_ptr<Transport> host, std::unique_ptr<InUse> in_use,
                  const StagedSettings& settings)
      : ForwardingTransport(std::move(host)),
        patience_(settings.patience),
        why_(settings.why),
        in_use_(std::move(in_use)),
        staging_(in_use_->staging) {
    staging_.allocate = [this](std::size_t bytes) { return allocate(bytes); };
    add_channels(staging_);
  }

  ~StagedTransport() override {
    let_leave();
    quiesce();
    if (is_stuck_) cuda::keep(std::move(in_use_));
  }

  std::string carrier() const override {
    const std::string below = ForwardingTransport::carrier();
    if (why_.empty()) return below;
    return fmt::format("{}{}staged, as {}", below, below.empty() ? "" : ", ", why_);
  }

  void progress() override {
    ForwardingTransport::progress();
    if (!staging_.streams.empty()) pump();
  }

  // A device's progress does not wake a sleeping rank, so a rank that waits for it stays awake.
  bool arm() override {
    if (staging_.streams.empty()) return ForwardingTransport::arm();
    if (!is_quiesced_ && pump()) return false;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank() && decorated(peer)->watches_device()) return false;
    }
    return ForwardingTransport::arm();
  }

  // The host transport first: peers see its end, and it does not depend on the device.
  void quiesce() noexcept override {
    if (std::exchange(is_quiesced_, true)) return;
    ForwardingTransport::quiesce();
    staging_.is_closed = true;
    for (const auto& stream : staging_.streams) stream->close();
    staging_.out.close();
    staging_.in.close();
    is_stuck_ = !cuda::wait_for_end(patience_, [this] {
      bool has_finished = staging_.out.has_finished() && staging_.in.has_finished();
      for (const auto& stream : staging_.streams) {
        stream->free_streams();
        has_finished &= stream->has_finished();
      }
      return has_finished;
    });
  }

 private:
  // Pumps all channels, also if one of them throws; then rethrows the first exception.
  bool pump() {
    bool has_moved = false;
    std::exception_ptr first;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank()) continue;
      try {
        has_moved |= decorated(peer)->pump();
      } catch (const std::exception&) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
    return has_moved;
  }

  // Waits until the streams' data have left: for their caller they were sent already.
  void let_leave() noexcept {
    if (is_quiesced_ || staging_.streams.empty()) return;
    cuda::wait_for_end(patience_, [this] {
      bool has_left = true;
      for (int peer = 0; peer < size(); ++peer) has_left &= peer == rank() || has_left_for(peer);
      return has_left;
    });
  }

  // Also true if they cannot leave any more.
  bool has_left_for(int peer) noexcept {
    try {
      ForwardingTransport::progress();
      decorated(peer)->pump();
      return decorated(peer)->has_left();
    } catch (const std::exception&) {
      return true;
    }
  }

  const std::chrono::milliseconds patience_;
  const std::string why_;
  std::unique_ptr<InUse> in_use_;
  Staging& staging_;
  bool is_quiesced_ = false;
  bool is_stuck_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_staged(std::unique_ptr<Transport> host,
                                       const StagedSettings& settings) {
  check(host != nullptr, "make_staged needs a transport for host memory");
  const std::string name(host->name());
  const int rank = host->rank();
  return make_staged([&host] { return std::move(host); }, name, rank, settings);
}

std::unique_ptr<Transport> make_staged(const std::function<std::unique_ptr<Transport>()>& make_host,
                                       std::string_view name, int rank,
                                       const StagedSettings& settings) {
  const std::size_t longest = settings.longest_segment_bytes;
  check(longest > 0 && longest % kSegmentAlignment == 0,
        "staged: longest_segment_bytes must be a multiple of kSegmentAlignment");
  check(cuda::slots_for(longest) >= kMinimumCredit,
        "staged: longest_segment_bytes leaves no room for four pinned slots each way in 4 MiB");
  check(settings.most_under_way >= kMinimumCredit, "staged: most_under_way is too small");
  const auto driver = settings.driver ? settings.driver : cuda::installed_driver();
  const std::string words =
      fmt::format("rank {}: device memory cannot go over {} here: ", rank, name);
  if (const std::string why = cuda::why_unusable(*driver); !why.empty())
    throw Error(ErrorCode::kUnavailable, kNoPeer, words + why);
  std::unique_ptr<InUse> in_use;
  try {
    const int device = cuda::choose_device(*driver, settings.device, rank);
    in_use = std::make_unique<InUse>(driver, device);
  } catch (const Error& error) {
    throw Error(error.code(), kNoPeer, words + error.what());
  }
  in_use->staging.rank = rank;
  in_use->staging.longest_segment_bytes = longest;
  in_use->staging.most_under_way = static_cast<std::size_t>(settings.most_under_way);
  return std::make_unique<StagedTransport>(make_host(), std::move(in_use), settings);
}

}  // namespace kolo::inline v0
