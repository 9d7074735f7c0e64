// Fuzzer of the bootstrap of cuda_ipc: messages from unknown processes and from peers at the rank's
// socket, the memory they pass, and the answers where the rank connects. Runs over a fake device
// (test/transports/cuda/fake_driver.h).
//
// The script runs during the bootstrap, one step whenever the rank asks the store for a failure. At
// its end every missing peer connects and answers. Then the rank must have connected to all, with
// the memory that each passed first, or must report why it cannot use it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/fuzz/input.h"
#include "test/transports/cuda/fake_driver.h"
#include "transports/base/aligned_memory.h"
#include "transports/cuda/address.h"
#include "transports/cuda/bootstrap.h"
#include "transports/cuda/hello.h"
#include "transports/error.h"
#include "transports/posix/shared_memory.h"
#include "transports/posix/unix_socket.h"

using namespace kolo;
using namespace kolo::fuzz;
using namespace kolo::test;

namespace {

constexpr int kSize = 3;
constexpr std::size_t kSegment = 1024;
constexpr std::size_t kWordsBytes = kSize * cuda::kBlockBytes;
constexpr int kMostActs = 24;
constexpr int kMostLastTurns = 100;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// A peer: its endpoint address, its listener, the connections that the tested rank has opened to
// that listener, and the memory that the peer passed.
struct Peer {
  cuda::EndpointAddress address;
  posix::UnixListener listener{8};
  std::vector<posix::Descriptor> calls;
  bool has_come = false;
  std::uint64_t mark = 0;  // first word of the memory that it passed; 0: unusable memory
};

struct Client {
  posix::Descriptor socket;
  bool has_spoken = false;  // later messages are ignored
};

// A store for one rank. The test plays its peers.
class Stage final : public Store {
 public:
  Stage(Input& input, int rank, FakeMachine& machine)
      : input_(input), rank_(rank), device_(machine.process(), 0) {
    for (int number = 0; number < kSize; ++number) {
      if (number == rank) continue;
      std::byte*& slots = slots_[index(number)];
      slots = device_.allocate(2 * kSize * slot_stride(kSegment) * kMinimumCredit);
      cuda::EndpointAddress& address = peers_[index(number)].address;
      address.process = "a process of its own";
      address.uuid = device_.uuid();
      address.socket = peers_[index(number)].listener.name();
      address.token = 100 + static_cast<std::uint64_t>(number);
      address.segment_bytes = kSegment;
      address.slots = kMinimumCredit;
      address.handle = device_.export_memory(slots);
    }
  }
  ~Stage() override {
    for (std::byte* const slots : slots_) {
      if (slots != nullptr) device_.free(slots);
    }
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  void set(std::string_view key, std::string_view value) override {
    if (key.starts_with("address/")) own_ = cuda::address_from_text(std::string(value), rank_);
  }
  std::string get(std::string_view key, Deadline) override {
    return key.starts_with("address/") ? cuda::to_text(peers_[index(key.back() - '0')].address)
                                       : "";
  }
  std::optional<std::string> try_get(std::string_view key) override { return get(key, {}); }
  std::int64_t add(std::string_view, std::int64_t delta) override { return delta; }
  void retire(std::string_view, int) override {}
  void join(int, std::string_view, int) override {}
  void leave() override {}
  std::string post_failure(std::string_view text) override { return std::string(text); }

  // Called once per step of the bootstrap, just after the rank has checked its socket.
  std::optional<std::string> failure() override {
    for (Peer& peer : peers_) {
      while (auto call = peer.listener.accept()) peer.calls.push_back(std::move(*call));
    }
    // At most one client sends per step, so the order of arrival is known.
    for (is_heard_next_ = false; !is_heard_next_ && acts_ < kMostActs && !input_.is_empty();
         ++acts_)
      act();
    if (!is_heard_next_) finish();
    return std::nullopt;
  }

  const Peer& peer(int rank) const { return peers_[index(rank)]; }

 private:
  int other() {
    const int number = static_cast<int>(input_.below(kSize - 1));
    return number < rank_ ? number : number + 1;
  }

  void act() {
    switch (input_.below(4)) {
      case 0:
        return visit();
      case 1:
        if (!clients_.empty()) speak(clients_[input_.below(number_of_clients())]);
        return;
      case 2:
        return answer();
      default:
        if (!clients_.empty()) clients_.erase(clients_.begin() + input_.below(number_of_clients()));
    }
  }

  // --- connections to the rank's socket ---

  unsigned number_of_clients() const { return static_cast<unsigned>(clients_.size()); }

  void visit() {
    auto socket = posix::connect_unix(own_.socket);
    if (!socket) return;  // the backlog is full in this step
    clients_.push_back({std::move(*socket)});
    if (input_.below(4) != 0) speak(clients_.back());
  }

  // Sends a hello that is right, nearly right, or something else.
  void speak(Client& client) {
    cuda::Hello hello{cuda::Hello{}.magic, own_.token, other()};
    const unsigned flaw = input_.below(8);
    if (flaw == 0) hello.rank = input_.number<std::int64_t>();
    if (flaw == 1) hello.token ^= std::uint64_t{1} << input_.below(64);
    if (flaw == 2) hello.magic = input_.number<std::uint64_t>();
    if (flaw == 3) hello.rank = rank_;
    const bool is_text = flaw == 4;
    const std::string text = is_text ? input_.short_text() : "";
    const bool is_right = !is_text && hello.magic == cuda::Hello{}.magic &&
                          hello.token == own_.token && is_peer(hello.rank);
    const auto said = is_text ? std::as_bytes(std::span(text)) : bytes_of(hello);
    say(client, said, is_right ? &peers_[static_cast<std::size_t>(hello.rank)] : nullptr);
  }

  bool is_peer(std::int64_t rank) const { return rank >= 0 && rank < kSize && rank != rank_; }

  // Passes right memory, or something else. A client that disconnects at once gets no welcome, so
  // it does not count as connected.
  void say(Client& client, std::span<const std::byte> said, Peer* peer) {
    const unsigned what = input_.below(8);
    const bool is_leaving = input_.below(8) == 1;
    const auto [passed, mark] = brought(what);
    if (!posix::send_message(client.socket.get(), said, passed.get())) return;
    is_heard_next_ = true;
    if (is_leaving) ::shutdown(client.socket.get(), SHUT_RDWR);
    const bool is_heard = !std::exchange(client.has_spoken, true);
    if (peer == nullptr || peer->has_come || !is_heard || is_leaving || !passed.is_open()) return;
    peer->has_come = true;
    peer->mark = mark;
  }

  std::pair<posix::Descriptor, std::uint64_t> brought(unsigned what) {
    if (what == 1) return {posix::Descriptor(), 0};
    if (what == 2) return {posix::Descriptor(::dup(listener_.descriptor())), 0};
    if (what == 3) {
      posix::Descriptor unsealed(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
      require(::ftruncate(unsealed.get(), kWordsBytes) == 0, "there is memory");
      return {std::move(unsealed), 0};
    }
    const bool is_short = what == 4;
    const posix::SharedMemory memory(is_short ? kWordsBytes - 1 : kWordsBytes);
    ++last_mark_;
    std::memcpy(memory.bytes().data(), &last_mark_, sizeof last_mark_);
    return {posix::Descriptor(::dup(memory.descriptor())), is_short ? 0 : last_mark_};
  }

  // --- connections made by the rank ---

  void answer() {
    Peer& peer = peers_[index(other())];
    if (peer.calls.empty()) return;
    const int call = peer.calls.back().get();
    switch (input_.below(4)) {
      case 0:
        return peer.calls.pop_back();
      case 1:
        return static_cast<void>(posix::send_message(call, bytes_of(own_.token), call));
      case 2: {
        const auto number = input_.number<std::uint64_t>();
        return static_cast<void>(posix::send_message(call, bytes_of(number)));
      }
      default: {
        const std::string text = input_.short_text();
        static_cast<void>(posix::send_message(call, std::as_bytes(std::span(text))));
      }
    }
  }

  // Every missing peer connects and answers.
  void finish() {
    require(++last_turns_ < kMostLastTurns, "ranks that come and answer are met");
    for (Peer& peer : peers_) {
      for (const posix::Descriptor& call : peer.calls)
        posix::send_message(call.get(), bytes_of(own_.token));
      const int number = static_cast<int>(&peer - peers_.data());
      if (number == rank_ || peer.has_come) continue;
      auto socket = posix::connect_unix(own_.socket);
      if (!socket) continue;
      Client client{std::move(*socket)};
      say_rightly(client, number);
      clients_.push_back(std::move(client));
    }
  }

  void say_rightly(Client& client, int number) {
    const cuda::Hello hello{cuda::Hello{}.magic, own_.token, number};
    const auto [passed, mark] = brought(0);
    require(posix::send_message(client.socket.get(), bytes_of(hello), passed.get()),
            "a hello can be said");
    peers_[index(number)].has_come = true;
    peers_[index(number)].mark = mark;
  }

  Input& input_;
  const int rank_;
  cuda::Device device_;
  std::array<Peer, kSize> peers_;
  std::array<std::byte*, kSize> slots_{};
  posix::UnixListener listener_{1};  // a descriptor that is not memory
  cuda::EndpointAddress own_;
  std::vector<Client> clients_;
  std::uint64_t last_mark_ = 0;
  bool is_heard_next_ = false;
  int acts_ = 0;
  int last_turns_ = 0;
};

void check(cuda::BootstrapResult& met, const Stage& stage, int rank) {
  for (int number = 0; number < kSize; ++number) {
    if (number == rank) continue;
    cuda::BootstrapResult::Peer& peer = met.peers[index(number)];
    require(peer.called.is_open() && peer.accepted.is_open(), "both ends of a meeting stay");
    std::uint64_t mark = 0;
    std::memcpy(&mark, peer.words->block(0), sizeof mark);
    require(mark != 0 && mark == stage.peer(number).mark, "what a peer brought first is mapped");
    require(peer.link.theirs == peer.words->block(rank), "a peer's words are where they were said");
    met.device->close(peer.link.mapping);
  }
}

void meet(Input& input, FakeMachine& machine) {
  const int rank = static_cast<int>(input.below(kSize));
  const auto stage = std::make_shared<Stage>(input, rank, machine);
  cuda::BootstrapSettings settings;
  settings.segment_bytes = kSegment;
  settings.process = "the rank's";
  settings.driver = machine.process();
  bool is_all_well = true;
  try {
    const auto met =
        cuda::meet({rank, kSize, stage, Clock::now() + std::chrono::seconds(60), 0, 2}, settings);
    check(*met, *stage, rank);
  } catch (const Error& error) {
    is_all_well = false;
    require(error.code() == ErrorCode::kUnavailable && error.peer() == kNoPeer,
            "memory that cannot be used is what keeps ranks apart");
  }
  for (int number = 0; number < kSize; ++number) {
    if (number != rank && stage->peer(number).mark == 0) {
      require(!is_all_well, "memory that cannot be used keeps ranks apart");
      return;
    }
  }
  require(is_all_well, "unknown clients do not keep ranks apart");
}

int lowest_free_descriptor() { return posix::Descriptor(::dup(STDERR_FILENO)).get(); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const int before = lowest_free_descriptor();
  {
    FakeMachine machine;
    meet(input, machine);
    const auto found = machine.violations();
    require(found.empty(), found.empty() ? "" : found.front().c_str());
    require(machine.left_over().empty(), "nothing of the device's stays");
  }
  require(lowest_free_descriptor() == before, "no descriptor stays");
  return 0;
}
