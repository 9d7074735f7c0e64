// What a rank's peer sends over its connections, whatever that is: hellos, chunks of lanes, an end
// at any place.
#include <sys/socket.h>
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "test/fuzz/sockets.h"
#include "test/fuzz/tcp_door.h"
#include "transports/error.h"
#include "transports/posix/socket.h"
#include "transports/tcp/connection_channel.h"
#include "transports/tcp/lanes_channel.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

constexpr std::size_t kSegment = 1024;

// A rank's end of a pair, and the connections that its peer plays.
class Pair {
 public:
  explicit Pair(bool has_lanes) : has_lanes_(has_lanes) {
    if (has_lanes) {
      channel_ = std::make_unique<tcp::LanesChannel>(door_, kPeer, kSegment, kSegment, 2);
    } else {
      channel_ = std::make_unique<tcp::ConnectionChannel>(door_, kPeer, kSegment, kSegment);
    }
    door_.let(kPeer, *channel_);
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
        return say(input, input.short_text());
      case 4:
        return say(input, hello_of(input));
      case 5:
        return say(input, chunk_of(input));
      default:
        return call(input);
    }
  }

 private:
  void connect(Input& input, bool is_called) {
    Ends ends;
    const std::uint32_t lane = input.below(4);
    const tcp::Hello hello{door_.token(), kPeer, kRank, input.below(2) != 0, lane};
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
    sent_ += posix::send_some(*one, bytes.data(), bytes.size()).bytes;
  }

  std::string hello_of(Input& input) const {
    tcp::Hello hello{door_.token(), kPeer, kRank, input.below(2) != 0, input.below(3)};
    if (input.below(8) == 0) hello.from = static_cast<std::int32_t>(input.below(3));
    return std::string(as_text(tcp::encode(hello)));
  }

  // Of a segment near the one that is awaited; without bytes it is a goodbye.
  std::string chunk_of(Input& input) const {
    tcp::ChunkHeader header;
    header.segment = received_ + static_cast<std::uint32_t>(input.number<std::int8_t>());
    header.offset = input.number<std::uint8_t>();
    header.bytes = input.below(200);
    if (input.below(8) == 0) header.offset = input.number<std::uint32_t>();
    std::string text(as_text(std::as_bytes(std::span(&header, 1))));
    return text + std::string(header.bytes, 'x');
  }

  void call(Input& input) {
    const std::size_t bytes = input.number<std::uint16_t>() % (kSegment + 2);
    try {
      use(input, bytes);
    } catch (const Error& error) {
      require(error.peer() == kPeer, "an error names the peer");
    } catch (const std::invalid_argument&) {  // a view is open already, and the like
    }
  }

  void use(Input& input, std::size_t bytes) {
    switch (input.below(6)) {
      case 0:
        if (const std::byte* const view = channel_->view(bytes)) look_at({view, bytes});
        return;
      case 1:
        return channel_->release();
      case 2:
        if (channel_->receive(std::span(into_).first(std::min(bytes, kSegment)), 0)) note(bytes);
        return;
      case 3:
        return static_cast<void>(channel_->send(std::span(from_).first(bytes % kSegment), 0));
      case 4:
        return static_cast<void>(channel_->say_goodbye());
      default:
        return static_cast<void>(channel_->is_drained());
    }
  }

  void look_at(std::span<const std::byte> view) const {
    std::string copy(as_text(view));
    require(copy.size() == view.size(), "a view can be read");
  }

  void note(std::size_t bytes) {
    ++received_;
    taken_ += bytes;
    require(has_lanes_ || taken_ <= sent_, "nothing is received that was not sent");
  }

  const bool has_lanes_;
  posix::Epoll watch_;
  tcp::Door door_ = make_door(watch_);
  std::unique_ptr<tcp::TcpChannel> channel_;
  std::vector<posix::Descriptor> peers_;
  std::array<std::byte, kSegment> into_{};
  std::array<std::byte, kSegment> from_{};
  std::size_t sent_ = 0;
  std::size_t taken_ = 0;
  std::uint32_t received_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Pair pair(input.below(2) != 0);
  for (int acts = 0; acts < 64 && !input.is_empty(); ++acts) pair.act(input);
  return 0;
}
