// What strangers, and a peer, say to a rank that shares memory while ranks meet: the handshake of
// shm, as the rank that listens and as the rank that calls.
//
// The store is the fuzzer's: it knows when a rank has published where it listens, and ends the
// meeting when all has been said.
#include <sys/mman.h>
#include <sys/socket.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/fuzz/input.h"
#include "transports/error.h"
#include "transports/posix/identity.h"
#include "transports/posix/shared_memory.h"
#include "transports/posix/unix_socket.h"
#include "transports/shm/address.h"
#include "transports/shm/connect.h"

using namespace kolo;
using namespace kolo::fuzz;

namespace {

const shm::Layout kLayout(4096);

// As in shm/connect.cpp.
struct Hello {
  std::uint64_t magic = shm::kMagic;
  std::uint32_t version = shm::kLayoutVersion;
  std::int32_t rank = 0;
  std::uint64_t ticket[2] = {0, 0};
  shm::Trial trial;
  std::uint32_t has_barriers = 0;
  std::uint32_t reserved = 0;
};

// A store of one rank, whose peers are played.
class Stage final : public Store {
 public:
  Stage(Input& input, int rank) : input_(input), rank_(rank) {
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
  void join(int) override {}
  void leave() override {}
  std::string post_failure(std::string_view text) override { return std::string(text); }

  // Asked before every wait: the moment to say something.
  std::optional<std::string> failure() override {
    while (auto called = listener_.accept()) said_to_.push_back(std::move(*called));
    if (turns_++ > 8 || input_.is_empty()) return "all has been said";
    const bool is_said = said_to_.empty() || input_.below(2) == 0 ? visit() : answer();
    return is_said ? std::nullopt : std::optional<std::string>("nobody listens any more");
  }

 private:
  bool visit() {
    auto socket = posix::connect_unix(own_.socket);
    if (!socket) return false;
    said_to_.push_back(std::move(*socket));
    return speak(said_to_.back().get(), own_);
  }

  bool answer() {
    return speak(said_to_[input_.below(static_cast<unsigned>(said_to_.size()))].get(), others_);
  }

  // A hello that is right, or nearly so, or something else.
  bool speak(int socket, const shm::Address& listener) {
    Hello hello;
    hello.rank = static_cast<std::int32_t>(input_.below(4));
    std::copy(listener.ticket, listener.ticket + 2, hello.ticket);
    const unsigned flaw = input_.below(8);
    if (flaw == 0) hello.rank = input_.number<std::int32_t>();
    if (flaw == 1) hello.ticket[input_.below(2)] ^= 1;
    if (flaw == 2) hello.magic = input_.number<std::uint64_t>();
    if (flaw == 3) hello.version = input_.number<std::uint32_t>();
    if (flaw == 4) hello.trial = {input_.number<std::uint64_t>(), input_.number<std::uint64_t>()};
    const std::string text = input_.short_text();
    const bool is_text = flaw == 5;
    const auto bytes =
        is_text ? std::as_bytes(std::span(text)) : std::as_bytes(std::span(&hello, 1));
    const bool is_said = pass(socket, bytes);
    if (input_.below(4) == 0) ::shutdown(socket, SHUT_RDWR);
    return is_said;
  }

  // With memory that is laid out well, or badly, or is none.
  bool pass(int socket, std::span<const std::byte> bytes) {
    const unsigned what = input_.below(5);
    if (what == 0) return posix::send_message(socket, bytes);
    if (what == 1) {
      const posix::Descriptor unsealed(::memfd_create("fuzz", MFD_CLOEXEC));
      return posix::send_message(socket, bytes, unsealed.get());
    }
    const posix::SharedMemory memory(kLayout.bytes() - (what == 2 ? 1 : 0));
    shm::Header header;
    header.ranks[0] = static_cast<std::int32_t>(what == 4 ? input_.below(4) : 0);
    header.ranks[1] = rank_;
    header.slots = static_cast<std::uint32_t>(kLayout.slots());
    header.segment_bytes = kLayout.segment_bytes();
    std::memcpy(memory.bytes().data(), &header, sizeof header);
    return posix::send_message(socket, bytes, memory.descriptor());
  }

  Input& input_;
  const int rank_;
  shm::Address own_;
  shm::Address others_;
  posix::UnixListener listener_{8};
  std::vector<posix::Descriptor> said_to_;
  int turns_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  TransportRequest request;
  request.size = 3;
  request.rank = static_cast<int>(input.below(3));
  request.store = std::make_shared<Stage>(input, request.rank);
  request.deadline = Clock::now() + std::chrono::seconds(20);
  try {
    const auto pairs = shm::connect_pairs(request, kLayout, false);
    require(pairs.size() == 2, "who has met has met all");
    for (const auto& pair : pairs)
      require(pair.peer != request.rank && pair.memory.bytes().size() == kLayout.bytes(),
              "a pair is one with a peer, and shares memory");
  } catch (const Error& error) {
    require(error.code() != ErrorCode::kDeadline, "nobody waits for what does not come");
  }
  return 0;
}
