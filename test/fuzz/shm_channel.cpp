// Fuzzer of the shm channel: a peer writes anything into the shared memory and sends anything over
// the socket.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "test/fuzz/sockets.h"
#include "transports/error.h"
#include "transports/shm/channel.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

constexpr std::size_t kSegment = 16 * 1024;
constexpr int kRank = 0;
constexpr int kPeer = 1;

// The two ranks are connected already.
class NoListener final : public shm::Connector {
 public:
  void connect(shm::ShmChannel&, bool) override {}
  std::string why_kept_out() const override { return ""; }
};

class Pair {
 public:
  explicit Pair(bool is_readable) {
    shm::Pair pair;
    pair.rank = kRank;
    pair.peer = kPeer;
    pair.layout = layout_;
    pair.process = is_readable ? ::getpid() : 0;
    pair.trial = shm::own_read_probe();
    pair.peer_name = "rank 1";
    channel_ = std::make_unique<shm::ShmChannel>(pair, listener_, holding_, *regions_,
                                                 shm::kShortestChoice);
    own_ = posix::SharedMemory(posix::Descriptor(::dup(channel_->share())), layout_.bytes());
    shm::Header header;
    header.ranks[0] = kPeer;
    header.ranks[1] = kRank;
    header.slots = static_cast<std::uint32_t>(layout_.slots());
    header.segment_bytes = layout_.segment_bytes();
    std::memcpy(bytes_.data(), &header, sizeof header);
    require(channel_->attach(posix::Descriptor(::dup(memory_.descriptor())), pair.process),
            "a region that is laid out well is taken");
    channel_->add_socket(std::move(ends_.theirs));
  }

  void act(Input& input) {
    switch (input.below(12)) {
      case 0:
      case 1:
      case 2:
        return announce(input);
      case 3:
        return write_anything(input);
      case 4:
        return give_back(input);
      case 5:
        return share(input);
      case 6:
        return hang_up(input);
      default:
        return call(input);
    }
  }

 private:
  // --- the peer ---

  shm::Frame& frame(std::uint64_t number) {
    return reinterpret_cast<shm::Frame*>(bytes_.data() +
                                         shm::Layout::frames_offset())[number % shm::kFrames];
  }
  shm::Control& control() {
    return *reinterpret_cast<shm::Control*>(bytes_.data() + shm::Layout::control_offset());
  }

  // The next frame, with any content.
  void announce(Input& input) {
    const auto flags = input.number<std::uint8_t>();
    shm::Announcement a;
    a.tiny_segments = flags >> 6;
    a.tiny_words = input.below(32);
    a.has_slot = (flags & 1) != 0;
    a.is_answered = (flags & 2) != 0;
    a.is_offered = (flags & 4) != 0;
    a.is_timed = (flags & 8) != 0;
    a.is_received = (flags & 16) != 0;
    a.slot = input.below(64);
    a.slot_bytes = size_of(input);
    shm::Frame& next = frame(announced_);
    if (a.is_offered && a.tiny_words <= 29) {
      const shm::Offer offer{input.below(4), address_of(input)};
      std::memcpy(next.tiny + a.tiny_words * 8, &offer, sizeof offer);
    }
    next.word.store(shm::pack(a, announced_));
    if ((flags & 32) == 0) ++announced_;  // otherwise it will be overwritten
  }

  // An address in a region, in this process, or anywhere.
  std::uint64_t address_of(Input& input) {
    switch (input.below(3)) {
      case 0:
        return input.number<std::uint16_t>();
      case 1:
        return reinterpret_cast<std::uintptr_t>(from_.data());
      default:
        return input.number<std::uint64_t>();
    }
  }

  // Writes into its own region, or into the rank's.
  void write_anything(Input& input) {
    const std::size_t words = layout_.slot_offset(0) / 8;
    const std::size_t word = input.number<std::uint16_t>() % (2 * words);
    const auto value = input.number<std::uint64_t>();
    const std::span<std::byte> region = word < words ? bytes_ : own_.bytes();
    reinterpret_cast<shm::SharedWord*>(region.data())[word % words].store(value);
  }

  void give_back(Input& input) {
    shm::Control& peer = control();
    const std::uint64_t consumed = peer.consumed.load();
    if (input.below(2) == 0) {
      peer.returned.set(consumed, input.below(16));
      peer.consumed.store(consumed + input.below(3));
    } else {
      peer.answered.store(peer.answered.load() + input.below(3));
    }
  }

  void share(Input& input) {
    shm::RegionMessage message;
    const unsigned flags = input.below(16);
    message.is_gone = flags & 1;
    message.id = input.below(4);
    message.bytes = input.number<std::uint16_t>();
    if ((flags & 2) != 0) message.bytes = input.number<std::uint64_t>();
    const std::size_t length = (flags & 4) != 0 ? input.below(24) : sizeof message;
    const auto said = std::as_bytes(std::span(&message, 1)).first(length);
    if ((flags & 8) != 0) {
      posix::send_message(ends_.mine.get(), said);
    } else if (input.below(4) == 0) {
      const posix::Descriptor unsealed(::memfd_create("fuzz", MFD_CLOEXEC));
      posix::send_message(ends_.mine.get(), said, unsealed.get());
    } else {
      const posix::SharedMemory shared(32 * 1024);
      posix::send_message(ends_.mine.get(), said, shared.descriptor());
    }
  }

  void hang_up(Input& input) {
    if (input.below(2) == 0) control().closed.store(1);
    if (input.below(4) == 0) ::shutdown(ends_.mine.get(), SHUT_RDWR);
  }

  // --- the rank ---

  static std::size_t size_of(Input& input) {
    constexpr std::array kSizes = {std::size_t{0},    std::size_t{1},    std::size_t{8},
                                   std::size_t{24},   std::size_t{56},   std::size_t{57},
                                   std::size_t{64},   std::size_t{1000}, std::size_t{4096},
                                   std::size_t{8192}, kSegment,          kSegment + 1};
    return kSizes[input.below(kSizes.size())];
  }

  void call(Input& input) {
    try {
      input.below(2) == 0 ? take(input) : give(input);
    } catch (const Error& error) {
      require(error.peer() == kPeer, "an error names the peer");
    } catch (const std::invalid_argument&) {  // for example a reserved slot
    }
  }

  void take(Input& input) {
    const std::size_t bytes = size_of(input);
    switch (input.below(11)) {
      case 8:
        return touch(channel_->view_unaligned(bytes), bytes);
      case 9: {
        const std::size_t next = size_of(input);
        const Both both = channel_->view_both(bytes, next);
        touch(both.first, bytes);
        return touch(both.next, next);
      }
      case 10:
        return channel_->release_both();
      case 0:
        return touch(channel_->view(bytes), bytes);
      case 1:
        return channel_->release();
      case 2:
        return static_cast<void>(
            channel_->receive(std::span(into_).first(std::min(bytes, kSegment)),
                              input.below(2) != 0 ? kCold : kPlain));
      case 3:
        if (std::byte* const view = channel_->view_to_answer(bytes)) {
          touch(view, bytes);
          std::memset(view, 7, bytes);
        }
        return;
      case 4:
        return channel_->answer();
      case 5:
        return touch(channel_->view_answer(std::min(bytes, kSegment)), std::min(bytes, kSegment));
      case 6:
        return channel_->release_answer();
      default:
        while (channel_->hear() == posix::Received::kMessage) {
        }
    }
  }

  void give(Input& input) {
    const std::size_t bytes = size_of(input);
    const unsigned flags = input.below(2) * kAnswered | input.below(2) * kMore;
    const auto sent = std::span<const std::byte>(from_).first(std::min(bytes, kSegment));
    switch (input.below(10)) {
      case 8:
        return static_cast<void>(
            channel_->send_gathered(sent.first(sent.size() / 16 * 8), {}, sent.size(), flags));
      case 9:
        return static_cast<void>(
            channel_->send_both(sent.first(sent.size() / 16 * 8), sent.size(),
                                std::span(from_).first(size_of(input) % kSegment), flags));
      case 0:
        if (std::byte* const slot = channel_->reserve(bytes)) {
          std::memset(slot, 7, bytes);
          channel_->commit(flags);
        }
        return;
      case 1:
      case 2:
        return static_cast<void>(
            channel_->send(std::span(from_).first(std::min(bytes, kSegment)),
                           flags | (input.below(2) != 0 ? kReceived : kPlain)));
      case 3:
        return channel_->flush();
      case 4:
        return static_cast<void>(channel_->is_drained());
      case 5:
        channel_->announce_sleep(shm::kAnyEvent);
        static_cast<void>(channel_->has_news(shm::kAnyEvent));
        return static_cast<void>(channel_->end_sleep());
      case 6:
        return channel_->lose_peer();
      default:
        return channel_->close();
    }
  }

  // Reads all bytes: an invalid address crashes here.
  void touch(const std::byte* view, std::size_t bytes) {
    if (view != nullptr) std::memmove(into_.data(), view, std::min(bytes, kSegment));
  }

  Ends ends_{SOCK_SEQPACKET};
  const shm::Layout layout_{kSegment};
  const posix::SharedMemory memory_{layout_.bytes()};  // the peer's region
  const std::span<std::byte> bytes_ = memory_.bytes();
  posix::SharedMemory own_;
  NoListener listener_;
  std::vector<shm::ShmChannel*> holding_;
  const std::shared_ptr<shm::Regions> regions_ = std::make_shared<shm::Regions>();
  std::unique_ptr<shm::ShmChannel> channel_;
  std::vector<std::byte> into_ = std::vector<std::byte>(kSegment);
  std::vector<std::byte> from_ = std::vector<std::byte>(kSegment);
  std::uint64_t announced_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Pair pair(input.below(2) != 0);
  for (int acts = 0; acts < 128 && !input.is_empty(); ++acts) pair.act(input);
  return 0;
}
