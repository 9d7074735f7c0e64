#include "bench/interpreter/channels.h"

#include <chrono>
#include <thread>

#include "transports/inproc/transport.h"

namespace kolo::bench {
namespace {

constexpr std::chrono::seconds kPatience{60};

class NullChannel final : public Channel {
 public:
  explicit NullChannel(int peer) : peer_(peer) { capabilities_.can_answer = true; }

  int peer() const override { return peer_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  const ChannelStatistics& statistics() const override { return statistics_; }
  std::byte* reserve(std::size_t) override { return nullptr; }
  void commit(unsigned) override {}
  bool send(std::span<const std::byte>, unsigned) override { return false; }
  bool is_drained() override { return true; }
  const std::byte* view(std::size_t) override { return nullptr; }
  void release() override {}
  bool receive(std::span<std::byte>, unsigned) override { return false; }

 private:
  int peer_;
  Capabilities capabilities_;
  ChannelStatistics statistics_;
};

}  // namespace

// Making inproc transports is collective, so each rank needs a thread meanwhile.
InprocRanks::InprocRanks(int size) : transports_(static_cast<std::size_t>(size)) {
  const std::shared_ptr<Store> store = make_local_store();
  InprocSettings settings;
  settings.segment_bytes = kInterpreterSegment;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([this, rank, size, &store, &settings] {
      const TransportRequest request{rank, size, store, Clock::now() + kPatience};
      transports_[static_cast<std::size_t>(rank)] = make_inproc(request, settings);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<Channel*> InprocRanks::channels(int rank) {
  std::vector<Channel*> all;
  for (int peer = 0; peer < static_cast<int>(transports_.size()); ++peer) {
    all.push_back(peer == rank ? nullptr : &channel(rank, peer));
  }
  return all;
}

NullChannels::NullChannels(int rank, int size) {
  for (int peer = 0; peer < size; ++peer) {
    owned_.push_back(peer == rank ? nullptr : std::make_unique<NullChannel>(peer));
    channels_.push_back(owned_.back().get());
  }
}

NullChannels::~NullChannels() = default;

CallHeader sum_header(std::size_t count) {
  CallHeader header;
  header.collective = Collective::kAllReduce;
  header.segment_units = kInterpreterSegment / kSegmentAlignment;
  header.count_and_plan = static_cast<std::uint64_t>(count) << 16;
  return header;
}

Binding binding_of(const float* in, float* out, std::size_t count) {
  Binding binding;
  binding.in = in;
  binding.out = out;
  binding.header = sum_header(count);
  return binding;
}

}  // namespace kolo::bench
