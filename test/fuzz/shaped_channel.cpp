// Fuzzer of the shaped channel: a peer sends headers with any times and lengths, or segments
// without headers.
#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>

#include "test/fuzz/input.h"
#include "transports/decorators/shaped_channel.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::fuzz;
using decorators::ShapedChannel;
using decorators::TransitTimes;

namespace {

constexpr std::size_t kSegment = 1024;
constexpr int kPeer = 1;

// The same header as in decorators/shaped_channel.h.
struct Header {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::int64_t flight_ns = 0;
  std::uint64_t bytes = 0;
};

// The underlying channel: it accepts all data and returns what the input says.
class Below final : public Channel {
 public:
  Below() { capabilities_.segment_bytes = capabilities_.preferred_segment_bytes = kSegment; }

  void put(std::string_view bytes) { there_ += bytes; }

  int peer() const override { return kPeer; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }
  std::byte* reserve(std::size_t) override { return slot_.data(); }
  void commit(unsigned) override {}
  bool send(std::span<const std::byte>, unsigned) override { return true; }
  bool is_drained() override { return true; }
  const std::byte* view(std::size_t) override { return nullptr; }
  void release() override {}
  bool receive(std::span<std::byte> into, unsigned) override {
    if (there_.size() < into.size()) return false;
    if (!into.empty()) std::memcpy(into.data(), there_.data(), into.size());
    there_.erase(0, into.size());
    return true;
  }

 private:
  Capabilities capabilities_;
  ChannelStatistics statistics_;
  std::array<std::byte, kSegment> slot_{};
  std::string there_;
};

// A clock set by the input, and the segments in transit, in order.
class ShapingEvents final : public decorators::ShapingEvents {
 public:
  Clock::time_point now() override { return now_; }
  void wake_at(Clock::time_point) override {}
  void comes(ShapedChannel& channel, TransitTimes at) override {
    coming_.push_back({at, &channel});
  }
  void admit_due() override {
    while (!coming_.empty() && coming_.front().first.last <= now_) {
      coming_.front().second->admit();
      coming_.pop_front();
    }
  }

  void go_on(std::chrono::nanoseconds time) { now_ += time; }

 private:
  Clock::time_point now_{std::chrono::hours(24)};
  std::deque<std::pair<TransitTimes, ShapedChannel*>> coming_;
};

// Times near now, or any time.
std::int64_t time_of(Input& input, ShapingEvents& agenda) {
  if (input.below(4) == 0) return input.number<std::int64_t>();
  const std::chrono::nanoseconds now = agenda.now().time_since_epoch();
  return now.count() + input.number<std::int32_t>();
}

std::string segment_of(Input& input, ShapingEvents& agenda) {
  Header header;
  header.first_ns = time_of(input, agenda);
  header.last_ns = time_of(input, agenda);
  header.flight_ns =
      input.below(4) == 0 ? input.number<std::int64_t>() : input.number<std::uint32_t>();
  header.bytes = input.below(8) == 0 ? input.number<std::uint64_t>() : input.number<std::uint8_t>();
  std::string bytes(as_text(std::as_bytes(std::span(&header, 1))));
  return bytes + std::string(std::min<std::uint64_t>(header.bytes, kSegment), 'x');
}

void use(ShapedChannel& channel, Input& input, std::size_t bytes) {
  std::array<std::byte, kSegment> into{};
  switch (input.below(5)) {
    case 0:
      if (const std::byte* const view = channel.view(bytes)) std::memcpy(into.data(), view, bytes);
      return;
    case 1:
      return channel.release();
    case 2:
      return static_cast<void>(channel.receive(std::span(into).first(bytes), 0));
    case 3:
      return static_cast<void>(channel.send(std::span(into).first(bytes), 0));
    default:
      return channel.progress();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Below below;
  ShapingEvents agenda;
  decorators::SegmentPool pool;
  decorators::ShapedChannelSetup setup;
  setup.has_same_clock = input.below(2) == 0;
  setup.in = setup.out = {.is_shaped = true, .bytes_per_second = 1'000'000};
  ShapedChannel channel(below, setup, pool, agenda);
  while (!input.is_empty()) {
    agenda.go_on(std::chrono::microseconds(input.number<std::uint8_t>()));
    if (input.below(2) == 0)
      below.put(input.below(4) == 0 ? input.short_text() : segment_of(input, agenda));
    try {
      use(channel, input, input.number<std::uint8_t>());
    } catch (const Error& error) {
      require(error.peer() == kPeer, "an error names the peer");
    } catch (const std::invalid_argument&) {  // for example a release without a view
    }
  }
  return 0;
}
