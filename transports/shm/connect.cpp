#include "transports/shm/connect.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "transports/error.h"
#include "transports/exchange.h"
#include "transports/posix/identity.h"
#include "transports/posix/memory_barrier.h"
#include "transports/posix/unix_socket.h"
#include "transports/shm/address.h"

namespace kolo::shm {

namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 50ms;  // at the store's failure, and at listeners whose queue was full
constexpr auto kHelloWithin = 5s;  // a stranger may hold one descriptor of ours for so long
constexpr std::size_t kMostStrangers = 64;

// The one message of each side. Plain bytes: both ends are on one machine.
struct Hello {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kLayoutVersion;
  std::int32_t rank = 0;
  std::uint64_t ticket[2] = {0, 0};  // of the rank that listens
  Trial trial;                       // in the process of who says it
  std::uint32_t has_barriers = 0;
  std::uint32_t reserved = 0;  // room for a proof of the job's secret begins here
};

class Meeting {
 public:
  Meeting(const TransportRequest& request, const Layout& layout, bool has_remote_barriers)
      : request_(request),
        layout_(layout),
        has_barriers_(has_remote_barriers && posix::accept_barriers()) {
    const auto why_not = posix::why_no_shared_memory();
    if (why_not.empty()) listener_.emplace(request.size + 16);
    publish(why_not);
  }

  std::vector<Pair> run() {
    check_addresses();
    met_.resize(addresses_.size());
    for (int peer = request_.rank + 1; peer < request_.size; ++peer) to_connect_.push_back(peer);
    while (true) {
      connect_waiting();
      if (missing().empty()) break;
      wait_for_news();
      accept_waiting();
      read_hellos();
    }
    std::vector<Pair> pairs;
    for (auto& pair : met_) {
      if (pair) pairs.push_back(std::move(*pair));
    }
    return pairs;
  }

 private:
  struct Stranger {
    posix::Descriptor socket;
    Deadline patience;
  };

  void publish(const std::string& why_not) {
    std::random_device random;
    for (auto& word : own_.ticket) word = std::uint64_t{random()} << 32 | random();
    own_.segment_bytes = layout_.segment_bytes();
    own_.process = ::getpid();
    own_.host = posix::host_identity();
    own_.reason = why_not;
    if (listener_) own_.socket = listener_->name();
    const auto texts = exchange(*request_.store, request_.rank, request_.size, "address",
                                to_text(own_), request_.deadline, "share memory (shm)");
    for (int peer = 0; peer < request_.size; ++peer) {
      addresses_.push_back(address_from_text(texts[static_cast<std::size_t>(peer)], peer));
    }
  }

  // All ranks see all addresses, so all come to the same end.
  void check_addresses() const {
    for (int peer = 0; peer < request_.size; ++peer) {
      const Address& address = address_of(peer);
      if (address.host != own_.host) {
        fail(ErrorCode::kUnavailable, peer,
             fmt::format("is on another host or in another network namespace ({}, here {}): shm "
                         "joins ranks of one "
                         "host; use tcp",
                         address.host, own_.host));
      }
      if (address.socket.empty()) {
        fail(ErrorCode::kUnavailable, peer,
             "cannot share memory (" + address.reason + "): use tcp");
      }
      if (address.segment_bytes != own_.segment_bytes) {
        fail(ErrorCode::kProtocol, peer,
             fmt::format("has segments of {} bytes, this rank {}: set the same on every rank",
                         address.segment_bytes, own_.segment_bytes));
      }
    }
  }

  bool has_met(int peer) const { return met_[static_cast<std::size_t>(peer)].has_value(); }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int peer = 0; peer < request_.size; ++peer) {
      if (peer != request_.rank && !has_met(peer)) ranks.push_back(peer);
    }
    return ranks;
  }

  // A listener's queue may be full of strangers; then it is tried again.
  void connect_waiting() {
    std::erase_if(to_connect_, [this](int peer) {
      auto socket = call(peer);
      if (!socket) return false;
      say_hello(peer, std::move(*socket));
      return true;
    });
  }

  std::optional<posix::Descriptor> call(int peer) const {
    try {
      return posix::connect_unix(address_of(peer).socket);
    } catch (const Error& error) {
      fail(error.code(), peer, fmt::format("cannot be reached: {} (shm)", error.what()));
    }
  }

  void say_hello(int peer, posix::Descriptor socket) {
    Called called{peer, std::move(socket), posix::SharedMemory(layout_.bytes())};
    auto* header = new (called.memory.bytes().data()) Header;
    *header = header_for(request_.rank, peer);
    const Hello hello = hello_for(address_of(peer));
    if (!posix::send_message(called.socket.get(), bytes_of(hello), called.memory.descriptor())) {
      fail(ErrorCode::kPeerLost, peer, "hung up before it was told hello (shm)");
    }
    called.memory.forget_descriptor();
    called_.push_back(std::move(called));
  }

  void wait_for_news() {
    const auto now = Clock::now();
    if (now >= request_.deadline) fail_deadline();
    if (const auto failure = request_.store->failure())
      throw Error(ErrorCode::kAborted, kNoPeer, *failure);
    std::vector<pollfd> watched{{listener_->descriptor(), POLLIN, 0}};
    for (const auto& called : called_) watched.push_back({called.socket.get(), POLLIN, 0});
    for (const auto& stranger : strangers_) watched.push_back({stranger.socket.get(), POLLIN, 0});
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(request_.deadline - now);
    const auto time =
        std::min<std::chrono::milliseconds>(left, to_connect_.empty() ? kLookEvery : 1ms);
    ::poll(watched.data(), watched.size(), static_cast<int>(time.count()));
  }

  void accept_waiting() {
    while (auto socket = listener_->accept()) {
      if (strangers_.size() == kMostStrangers) strangers_.erase(strangers_.begin());
      strangers_.push_back({std::move(*socket), Clock::now() + kHelloWithin});
    }
  }

  void read_hellos() {
    const auto now = Clock::now();
    std::erase_if(strangers_, [this, now](Stranger& stranger) {
      Hello hello;
      auto message = posix::receive_message(stranger.socket.get(), writable_bytes_of(hello));
      if (message.what == posix::Received::kNothing) return now > stranger.patience;
      if (message.what == posix::Received::kMessage && is_expected(hello, message)) {
        welcome(hello, std::move(stranger.socket), std::move(message.passed));
      }
      return true;
    });
    std::erase_if(called_, [this](Called& called) {
      Hello hello;
      const auto message = posix::receive_message(called.socket.get(), writable_bytes_of(hello));
      if (message.what == posix::Received::kNothing) return false;
      if (message.what == posix::Received::kClosed || message.bytes != sizeof hello ||
          hello.rank != called.peer) {
        fail(ErrorCode::kPeerLost, called.peer, "hung up instead of saying hello (shm)");
      }
      finish(called.peer, std::move(called.socket), std::move(called.memory), hello);
      return true;
    });
  }

  // Without the ticket it is not of this job; with it, it is a lower rank that has not come yet.
  bool is_expected(const Hello& hello, const posix::Message& message) const {
    return message.bytes == sizeof hello && hello.magic == kMagic &&
           hello.version == kLayoutVersion &&
           std::equal(hello.ticket, hello.ticket + 2, own_.ticket) && hello.rank >= 0 &&
           hello.rank < request_.rank && !has_met(hello.rank);
  }

  void welcome(const Hello& hello, posix::Descriptor socket, posix::Descriptor memfd) {
    // The kernel drops a descriptor that has no room here, without a word.
    if (!memfd.is_open()) {
      fail(ErrorCode::kSystem, hello.rank,
           "handed over memory that this rank cannot take: " + posix::error_text(EMFILE));
    }
    posix::SharedMemory memory(std::move(memfd), layout_.bytes());
    memory.forget_descriptor();
    Header header;
    std::memcpy(&header, memory.bytes().data(), sizeof header);
    if (!(header == header_for(hello.rank, request_.rank))) {
      fail(ErrorCode::kProtocol, hello.rank,
           "has laid out the shared memory in another way: run the same build");
    }
    Hello reply = hello_for(own_);
    if (!posix::send_message(socket.get(), bytes_of(reply))) {
      fail(ErrorCode::kPeerLost, hello.rank, "hung up after saying hello (shm)");
    }
    finish(hello.rank, std::move(socket), std::move(memory), hello);
  }

  void finish(int peer, posix::Descriptor socket, posix::SharedMemory memory, const Hello& hello) {
    Pair pair;
    pair.rank = request_.rank;
    pair.peer = peer;
    pair.process = posix::peer_process(socket.get());
    pair.trial = hello.trial;
    pair.socket = std::move(socket);
    pair.memory = std::move(memory);
    pair.layout = layout_;
    pair.has_barriers = has_barriers_ && hello.has_barriers != 0;
    pair.peer_name = name_of(peer);
    met_[static_cast<std::size_t>(peer)] = std::move(pair);
  }

  Hello hello_for(const Address& listener) const {
    Hello hello;
    hello.rank = request_.rank;
    std::copy(listener.ticket, listener.ticket + 2, hello.ticket);
    hello.trial = own_trial();
    hello.has_barriers = has_barriers_ ? 1 : 0;
    return hello;
  }

  Header header_for(int lower, int higher) const {
    Header header;
    header.ranks[0] = lower;
    header.ranks[1] = higher;
    header.slots = static_cast<std::uint32_t>(layout_.slots());
    header.segment_bytes = layout_.segment_bytes();
    return header;
  }

  const Address& address_of(int peer) const { return addresses_[static_cast<std::size_t>(peer)]; }

  std::string name_of(int peer) const {
    return fmt::format("rank {} (process {})", peer, address_of(peer).process);
  }

  [[noreturn]] void fail(ErrorCode code, int peer, const std::string& what) const {
    throw Error(code, peer, fmt::format("rank {}: {} {}", request_.rank, name_of(peer), what));
  }

  [[noreturn]] void fail_deadline() const {
    const std::vector<int> ranks = missing();
    throw Error(ErrorCode::kDeadline, ranks.front(),
                fmt::format("rank {}: {} published their addresses but did not connect in time "
                            "(shm): look for why they "
                            "stopped, or raise the timeout",
                            request_.rank, name_ranks(ranks)));
  }

  template <typename T>
  static std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
  }
  template <typename T>
  static std::span<std::byte> writable_bytes_of(T& value) {
    return std::as_writable_bytes(std::span(&value, 1));
  }

  struct Called {
    int peer = 0;
    posix::Descriptor socket;
    posix::SharedMemory memory;
  };

  const TransportRequest& request_;
  const Layout& layout_;
  const bool has_barriers_;
  std::optional<posix::UnixListener> listener_;
  Address own_;
  std::vector<Address> addresses_;
  std::vector<int> to_connect_;
  std::vector<Called> called_;            // hello is said, and not answered yet
  std::vector<Stranger> strangers_;       // connected, and have not said hello yet
  std::vector<std::optional<Pair>> met_;  // by peer
};

}  // namespace

std::vector<Pair> connect_pairs(const TransportRequest& request, const Layout& layout,
                                bool has_remote_barriers) {
  if (request.size == 1) return {};
  return Meeting(request, layout, has_remote_barriers).run();
}

}  // namespace kolo::shm
