// Fuzzer of stream channels: a peer writes anything into the words that its streams and this rank's
// hosts share. Runs over a fake device (test/transports/cuda/fake_driver.h), which reports any
// access of a stream to invalid memory as a violation.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "test/fuzz/input.h"
#include "test/transports/cuda/fake_driver.h"
#include "transports/base/aligned_memory.h"
#include "transports/cuda/bootstrap.h"
#include "transports/cuda/ipc_exports.h"
#include "transports/cuda/stream_channel.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::cuda;
using namespace kolo::fuzz;
using namespace kolo::test;

namespace {

constexpr std::size_t kSegment = 1024;
constexpr std::size_t kLongest = 4 * kSegment;
constexpr std::size_t kSlotsBytes = kMinimumCredit * 4 * kSegment;
constexpr int kPeer = 1;

posix::SharedMemory words() { return posix::SharedMemory(2 * kBlockBytes); }

class Pair {
 public:
  Pair() {
    link_.rank = 0;
    link_.peer = kPeer;
    link_.own = own_words_.block(kPeer);
    link_.theirs = their_words_.block(0);
    link_.own_words = own_words_.address(kPeer);
    link_.their_words = their_words_.address(0);
    link_.own_slots = device_.allocate(kSlotsBytes);
    peers_slots_ = peers_device_.allocate(kSlotsBytes);
    link_.their_slots =
        device_.open(peers_device_.export_memory(peers_slots_), kSlotsBytes, "rank 1");
    link_.mapping = link_.their_slots;
    link_.own_captured_slots = link_.own_slots + kSlotsBytes / 2;
    link_.their_captured_slots = link_.their_slots + kSlotsBytes / 2;
    link_.segment_bytes = kSegment;
    channel_ =
        std::make_unique<DeviceChannel>(device_, RankResources{exports_, backlog_, writes_}, link_);
    stream_ = driver_->make_stream();
    for (std::byte*& each : peers_memory_) each = peers_device_.allocate(kLongest);
    memory_ = device_.allocate(kLongest);
  }

  // The order in which a transport shuts down.
  ~Pair() {
    channel_->close(false);
    for (int i = 0; i < 3; ++i) {
      channel_->free_streams();
      machine_.run();
    }
    require(channel_->has_finished(), "a stream waits for nothing that its owner cannot write");
    channel_->unmap();
    channel_.reset();
    device_.free(memory_);
    device_.free(link_.own_slots);
    for (std::byte* const each : peers_memory_) peers_device_.free(each);
    peers_device_.free(peers_slots_);
    const auto found = machine_.violations();
    require(found.empty(), found.empty() ? "" : found.front().c_str());
  }

  void act(Input& input) {
    switch (input.below(8)) {
      case 0:
      case 1:
        return announce(input);
      case 2:
        return write_anything(input);
      case 3:
        return move_on(input);
      default:
        return call(input);
    }
  }

 private:
  // --- the peer ---

  void announce(Input& input) {
    Announcement said;
    said.bytes = size_of(input);
    const unsigned flags = input.below(16);
    said.is_straight = flags & 1;
    if ((flags & 2) != 0) said.gone = input.below(4);
    const auto place =
        peers_exports_.find(peers_memory_[input.below(kMemories)] + input.below(64), 1);
    if (place) said.place = *place;
    if ((flags & 4) != 0) said.place.offset = input.number<std::uint64_t>();
    if ((flags & 8) != 0) lie(said.place, input);
    link_.own->ring[announced_ % kAnnouncements] = said;
    link_.own->announced.store(++announced_);
  }

  // Falsifies the handle, or the description of the memory that it opens.
  void lie(Exported& place, Input& input) {
    const unsigned about = input.below(4);
    if (about == 0) place.handle.bytes[input.below(sizeof(IpcHandle))] ^= 1;
    if (about == 1) place.bytes = input.number<std::uint64_t>();
    if (about == 2) place.base = input.number<std::uint64_t>();
    if (about == 3) place.buffer = 1 + input.below(kMemories);
  }

  void write_anything(Input& input) {
    const std::size_t count = sizeof(Block) / sizeof(std::uint64_t);
    const std::size_t at = input.number<std::uint16_t>() % count * sizeof(std::uint64_t);
    // announce() writes the fields that name memory.
    if (at >= offsetof(Block, ring) && at < offsetof(Block, captured)) return;
    const auto value = input.number<std::uint64_t>();
    auto* const block = reinterpret_cast<std::byte*>(link_.own);
    std::memcpy(block + at, &value, sizeof value);
  }

  void move_on(Input& input) {
    Block& own = *link_.own;
    switch (input.below(4)) {
      case 0:
        own.arrived.fetch_add(input.below(4));
        return;
      case 1:
        own.freed.fetch_add(input.below(4));
        return;
      case 2:
        own.read.fetch_add(input.below(4));
        return;
      default:
        own.is_closing.store(input.below(4));
    }
  }

  // --- the rank ---

  static std::size_t size_of(Input& input) {
    constexpr std::array kSizes = {std::size_t{0}, std::size_t{1}, std::size_t{64},
                                   kSegment,       kSegment + 1,   kLongest};
    return kSizes[input.below(kSizes.size())];
  }

  void call(Input& input) {
    try {
      switch (input.below(4)) {
        case 0:
          return channel_->begin(stream_);
        case 1:
          return take(input);
        case 2:
          return give(input);
        default:
          return look(input);
      }
    } catch (const Error& error) {
      const bool is_named = error.peer() == kPeer ||
                            std::string_view(error.what()).find("rank 1") != std::string::npos;
      // A channel that was closed, or failed with an earlier error, reports just that.
      require(is_named || error.code() == ErrorCode::kAborted, "an error names the peer");
    } catch (const std::invalid_argument&) {  // a call out of order
    }
  }

  void take(Input& input) {
    const std::size_t bytes = size_of(input);
    switch (input.below(4)) {
      case 0:
        channel_->view(stream_, bytes);
        break;
      case 1:
        channel_->release(stream_);
        break;
      case 2:
        channel_->receive(stream_, {memory_, bytes}, kPlain);
        break;
      default:
        channel_->view_sent(stream_, bytes);
    }
  }

  void give(Input& input) {
    const std::size_t bytes = size_of(input);
    switch (input.below(4)) {
      case 0:
        if (channel_->reserve(stream_, std::min(bytes, kSegment)) == nullptr) return;
        return channel_->commit(stream_, kPlain);
      case 1:
        channel_->send(stream_, {memory_, bytes}, kPlain);
        return;
      case 2:
        return channel_->drain(stream_);
      default:
        return channel_->end(stream_);
    }
  }

  void look(Input& input) {
    switch (input.below(6)) {
      case 0:
        return channel_->look_after_peer();
      case 1:
        return channel_->lose_peer();
      case 2:
        channel_->is_done();
        return;
      case 3:
        if (input.below(8) == 0) channel_->close(input.below(2) != 0);
        return;
      case 4:
        channel_->is_peer_gone();
        return;
      default:
        machine_.run();
    }
  }

  static constexpr unsigned kMemories = 3;

  FakeMachine machine_;
  std::shared_ptr<FakeDriver> driver_ = machine_.process();
  std::shared_ptr<FakeDriver> peers_driver_ = machine_.process();
  Device device_{driver_, 0};
  Device peers_device_{peers_driver_, 0};
  RegisteredWords own_words_{device_, words()};
  RegisteredWords their_words_{device_, words()};
  IpcExports exports_{device_};
  Backlog backlog_{device_};
  PendingWrites writes_{device_};
  IpcExports peers_exports_{peers_device_};
  Link link_;
  std::byte* peers_slots_ = nullptr;
  std::array<std::byte*, kMemories> peers_memory_{};
  std::byte* memory_ = nullptr;
  std::unique_ptr<DeviceChannel> channel_;
  Stream stream_ = nullptr;
  std::uint64_t announced_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Pair pair;
  for (int acts = 0; acts < 128 && !input.is_empty(); ++acts) pair.act(input);
  return 0;
}
