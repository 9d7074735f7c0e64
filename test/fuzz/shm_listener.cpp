// Fuzzer of the shm handshake: hellos from unknown processes and from a peer, to the rank as
// listener and as connecting side, while it sends and receives.
#include <sys/mman.h>
#include <sys/socket.h>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/shared_memory.h"
#include "transports/posix/unix_socket.h"
#include "transports/shm/address.h"
#include "transports/shm/listener.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

constexpr int kSize = 3;
const shm::Layout kLayout(4096);

// A store for one rank. The test plays its peers, with one listener for all.
class Stage final : public Store {
 public:
  explicit Stage(int rank) : rank_(rank) {
    others_.host = posix::host_identity();
    others_.segment_bytes = kLayout.segment_bytes();
    others_.socket = listener_.name();
  }

  void set(std::string_view, std::string_view value) override {
    own_ = shm::address_from_text(std::string(value), rank_);
  }
  std::optional<std::string> try_get(std::string_view) override { return shm::to_text(others_); }
  std::string get(std::string_view, Deadline) override { return shm::to_text(others_); }
  std::int64_t add(std::string_view, std::int64_t delta) override { return delta; }
  void retire(std::string_view, int) override {}
  void join(int, std::string_view, int) override {}
  void leave() override {}
  std::string post_failure(std::string_view text) override { return std::string(text); }
  std::optional<std::string> failure() override { return std::nullopt; }

  // Connects to the rank and sends a message.
  void visit(Input& input) {
    auto socket = posix::connect_unix(own_.socket);
    if (!socket) return;
    said_to_.push_back(std::move(*socket));
    speak(input, said_to_.back().get(), own_);
  }

  // Sends a message on a connection made by the rank, or on an earlier one.
  void answer(Input& input) {
    while (auto called = listener_.accept()) said_to_.push_back(std::move(*called));
    if (said_to_.empty()) return;
    speak(input, said_to_[input.below(static_cast<unsigned>(said_to_.size()))].get(), others_);
  }

 private:
  // Sends a hello that is right, nearly right, or something else.
  void speak(Input& input, int socket, const shm::EndpointAddress& listener) {
    shm::Hello hello;
    hello.rank = static_cast<std::int32_t>(input.below(4));
    std::copy(listener.ticket, listener.ticket + 2, hello.ticket);
    const unsigned flaw = input.below(8);
    if (flaw == 0) hello.rank = input.number<std::int32_t>();
    if (flaw == 1) hello.ticket[input.below(2)] ^= 1;
    if (flaw == 2) hello.magic = input.number<std::uint64_t>();
    if (flaw == 3) hello.version = input.number<std::uint32_t>();
    if (flaw == 4) hello.reserved = input.number<std::uint64_t>();
    const std::string text = input.short_text();
    const bool is_text = flaw == 5;
    const auto bytes =
        is_text ? std::as_bytes(std::span(text)) : std::as_bytes(std::span(&hello, 1));
    pass(input, socket, bytes, hello.rank);
    if (input.below(4) == 0) ::shutdown(socket, SHUT_RDWR);
  }

  // Passes a region that is laid out well or badly, or no region.
  void pass(Input& input, int socket, std::span<const std::byte> bytes, int peer) {
    const unsigned what = input.below(5);
    if (what == 0) return static_cast<void>(posix::send_message(socket, bytes));
    if (what == 1) {
      const posix::Descriptor unsealed(::memfd_create("fuzz", MFD_CLOEXEC));
      return static_cast<void>(posix::send_message(socket, bytes, unsealed.get()));
    }
    const posix::SharedMemory memory(kLayout.bytes() - (what == 2 ? 1 : 0));
    shm::Header header;
    header.ranks[0] = what == 4 ? static_cast<int>(input.below(4)) : peer;
    header.ranks[1] = rank_;
    header.slots = static_cast<std::uint32_t>(kLayout.slots());
    header.segment_bytes = kLayout.segment_bytes();
    std::memcpy(memory.bytes().data(), &header, sizeof header);
    posix::send_message(socket, bytes, memory.descriptor());
  }

  const int rank_;
  shm::EndpointAddress own_;
  shm::EndpointAddress others_;
  posix::UnixListener listener_{8};
  std::vector<posix::Descriptor> said_to_;
};

class Rank {
 public:
  Rank(int rank, const std::shared_ptr<Stage>& stage)
      : rank_(rank),
        rank_listener_({rank, kSize, stage, Clock::now() + std::chrono::seconds(20), 0, 2}, kLayout,
                       false, watch_) {
    for (int peer = 0; peer < kSize; ++peer) {
      if (peer == rank) continue;
      channels_.push_back(std::make_unique<shm::ShmChannel>(
          rank_listener_.pair_with(peer), rank_listener_, holding_, *regions_, 0));
      rank_listener_.let(peer, *channels_.back());
    }
  }

  void act(Input& input) {
    shm::ShmChannel& channel = *channels_[input.below(kSize - 1)];
    try {
      switch (input.below(5)) {
        case 0:
          if (std::byte* const slot = channel.reserve(8)) {
            std::memset(slot, 7, 8);
            channel.commit(kPlain);
          }
          break;
        case 1:
          if (channel.view(8) != nullptr) channel.release();
          break;
        case 2:
          rank_listener_.look();
          break;
        case 3:
          static_cast<void>(rank_listener_.hurry());
          break;
        default:
          static_cast<void>(channel.is_drained());
      }
    } catch (const Error& error) {
      require(error.peer() == channel.peer(), "an error names the peer");
    }
    check(channel);
  }

 private:
  void check(const shm::ShmChannel& channel) const {
    require(channel.peer() != rank_, "a channel is one with a peer");
    require(!channel.is_attached() || channel.has_region() || channel.is_dead(),
            "a channel that has attached a region has its own region");
  }

  const int rank_;
  posix::Epoll watch_;
  shm::Listener rank_listener_;
  const std::shared_ptr<shm::Regions> regions_ = std::make_shared<shm::Regions>();
  std::vector<shm::ShmChannel*> holding_;
  std::vector<std::unique_ptr<shm::ShmChannel>> channels_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const int number = static_cast<int>(input.below(kSize));
  const auto stage = std::make_shared<Stage>(number);
  Rank rank(number, stage);
  for (int acts = 0; acts < 24 && !input.is_empty(); ++acts) {
    switch (input.below(4)) {
      case 0:
        stage->visit(input);
        break;
      case 1:
        stage->answer(input);
        break;
      default:
        rank.act(input);
    }
  }
  return 0;
}
