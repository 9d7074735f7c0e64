// Fuzzer of the tcp channel: any data on the peer's connections, such as hellos, chunks of lanes,
// and a close at any place.
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "test/fuzz/sockets.h"
#include "test/fuzz/tcp_listener.h"
#include "transports/error.h"
#include "transports/posix/socket.h"
#include "transports/tcp/connection_channel.h"
#include "transports/tcp/lanes_channel.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

// Three chunks, if there are lanes.
constexpr std::size_t kSegment = 2 * tcp::kChunkBytes + 192;

// The length of a segment by its number: as in a job, both ends know it.
constexpr std::array kLengths = {kSegment, std::size_t{100}, tcp::kChunkBytes + 64, std::size_t{1}};
std::size_t length_of(std::uint32_t segment) { return kLengths[segment % kLengths.size()]; }

// The content of a segment from `offset` on, as a correct peer sends it. Never kUntouched.
constexpr std::byte kUntouched{0xff};
std::span<const std::byte> content_of(std::uint32_t segment, std::size_t offset,
                                      std::size_t bytes) {
  constexpr std::size_t kShifts = 251;
  static const std::vector<std::byte> pattern = [] {
    std::vector<std::byte> made(2 * kSegment + kShifts);
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = static_cast<std::byte>((i * 7 + i / 64) % 255);
    return made;
  }();
  return std::span(pattern).subspan(segment % kShifts + offset % kSegment, bytes);
}

// A rank's channel, and connections of a fake peer.
class Pair {
 public:
  explicit Pair(bool has_lanes) : has_lanes_(has_lanes) {
    if (has_lanes) {
      channel_ = std::make_unique<tcp::LanesChannel>(listener_, kPeer, kSegment, kSegment, 2);
    } else {
      channel_ = std::make_unique<tcp::ConnectionChannel>(listener_, kPeer, kSegment, kSegment);
    }
    listener_.let(kPeer, *channel_);
  }

  void act(Input& input) {
    switch (input.below(12)) {
      case 0:
        return connect(input, false);
      case 1:
        return connect(input, true);
      case 2:
        return hang_up(input);
      case 3:
        is_noise_ = true;
        return say(input, input.short_text());
      case 4:
        return say(input, hello_of(input));
      case 5:
      case 6:
      case 7:
        return say(input, chunk_of(input));
      default:
        return call(input);
    }
  }

 private:
  void connect(Input& input, bool is_called) {
    Ends ends;
    const std::uint32_t lane = input.below(4);
    const tcp::Hello hello{listener_.token(), kPeer, kRank, input.below(2) != 0, lane};
    if (channel_->take(ends.theirs, is_called ? nullptr : &hello, lane))
      peers_.push_back(std::move(ends.mine));
  }

  posix::Descriptor* peer(Input& input) {
    return peers_.empty() ? nullptr : &peers_[input.below(static_cast<unsigned>(peers_.size()))];
  }

  void hang_up(Input& input) {
    posix::Descriptor* const one = peer(input);
    if (one != nullptr && one->is_open()) ::shutdown(one->get(), SHUT_RDWR);
  }

  void say(Input& input, const std::string& bytes) {
    posix::Descriptor* const one = peer(input);
    if (one == nullptr || !one->is_open()) return;
    const std::size_t sent = posix::send_some(*one, bytes.data(), bytes.size()).bytes;
    sent_ += sent;
    is_cut_ |= sent < bytes.size();
  }

  std::string hello_of(Input& input) const {
    tcp::Hello hello{listener_.token(), kPeer, kRank, input.below(2) != 0, input.below(3)};
    if (input.below(8) == 0) hello.from = static_cast<std::int32_t>(input.below(3));
    return std::string(as_text(tcp::encode(hello)));
  }

  // Mostly a chunk of a segment near the awaited one, cut as a sender cuts it. A chunk without
  // bytes is a goodbye.
  std::string chunk_of(Input& input) const {
    tcp::ChunkHeader header;
    header.segment = received_ + input.below(2);
    header.offset = input.below(4) * static_cast<std::uint32_t>(tcp::kChunkBytes);
    const std::size_t length = length_of(header.segment);
    if (header.offset < length)
      header.bytes = static_cast<std::uint32_t>(std::min(tcp::kChunkBytes, length - header.offset));
    const unsigned flaw = input.below(32);
    if (flaw == 1) header.segment += static_cast<std::uint32_t>(input.number<std::int8_t>());
    if (flaw == 2) header.offset += input.number<std::uint8_t>();
    if (flaw == 3) header.bytes = input.number<std::uint8_t>();
    if (flaw == 4) header.offset = input.number<std::uint32_t>();
    return std::string(as_text(std::as_bytes(std::span(&header, 1)))) +
           std::string(as_text(content_of(header.segment, header.offset, header.bytes)));
  }

  void call(Input& input) {
    try {
      use(input);
    } catch (const Error& error) {
      require(error.peer() == kPeer, "an error names the peer");
    } catch (const std::invalid_argument&) {  // for example a view that is still open
    }
  }

  void use(Input& input) {
    switch (input.below(6)) {
      case 0:
        return view(length_asked(input, true));
      case 1:
        return release();
      case 2:
        return receive(length_asked(input, false));
      case 3:
        return static_cast<void>(
            channel_->send(std::span(from_).first(input.number<std::uint16_t>() % kSegment), 0));
      case 4:
        return static_cast<void>(channel_->say_goodbye());
      default:
        return static_cast<void>(channel_->is_drained());
    }
  }

  // An incomplete segment is mostly requested again in the same way.
  std::size_t length_asked(Input& input, bool is_view) {
    std::size_t length = length_of(received_);
    if (input.below(32) == 1) length = input.number<std::uint32_t>() % (kSegment + 2);
    if (asked_ && asked_->is_view == is_view && input.below(32) != 1) return asked_->bytes;
    is_asked_otherwise_ |= asked_ && (asked_->is_view != is_view || asked_->bytes != length);
    asked_ = Asked{is_view, length};
    return length;
  }

  void view(std::size_t bytes) {
    const std::byte* const view = channel_->view(bytes);
    if (view == nullptr) return;
    if (viewed_bytes_ == kNone) {
      viewed_bytes_ = bytes;
      asked_.reset();
    }
    look_at({view, viewed_bytes_});
  }

  void release() {
    channel_->release();
    note(viewed_bytes_);
    viewed_bytes_ = kNone;
  }

  void receive(std::size_t bytes) {
    const auto into = std::span(into_).first(std::min(bytes, kSegment));
    if (!channel_->receive(into, 0)) return;
    asked_.reset();
    look_at(into);
    note(into.size());
    std::ranges::fill(into, kUntouched);
  }

  // All bytes of a segment must be the peer's, however it cuts the segment, if the rank requests it
  // correctly. After random bytes the content may be anything.
  void look_at(std::span<const std::byte> segment) const {
    if (!has_lanes_ || is_noise_ || is_cut_ || is_asked_otherwise_) return;
    require(std::ranges::equal(segment, content_of(received_, 0, segment.size())),
            "every byte is where its sender had it");
  }

  void note(std::size_t bytes) {
    ++received_;
    taken_ += bytes;
    require(has_lanes_ || taken_ <= sent_, "nothing is received that was not sent");
  }

  struct Asked {
    bool is_view = false;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  const bool has_lanes_;
  posix::Epoll watch_;
  tcp::Listener listener_ = make_listener(watch_);
  std::unique_ptr<tcp::TcpChannel> channel_;
  std::vector<posix::Descriptor> peers_;
  std::vector<std::byte> into_ = std::vector<std::byte>(kSegment, kUntouched);
  std::vector<std::byte> from_ = std::vector<std::byte>(kSegment);
  std::size_t sent_ = 0;
  std::size_t taken_ = 0;
  std::uint32_t received_ = 0;
  std::optional<Asked> asked_;  // the request of an incomplete segment
  std::size_t viewed_bytes_ = kNone;
  bool is_noise_ = false;
  bool is_cut_ = false;
  bool is_asked_otherwise_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Pair pair(input.below(2) != 0);
  for (int acts = 0; acts < 64 && !input.is_empty(); ++acts) pair.act(input);
  return 0;
}
