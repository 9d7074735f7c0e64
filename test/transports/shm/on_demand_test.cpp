// Connections on demand: two ranks share nothing before the first use of their channel. The tests
// check the cost of the start, the cost of a ring, and how two ranks connect.
//
// One thread runs all ranks, in turn.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/shared_memory.h"
#include "transports/posix/unix_socket.h"
#include "transports/shm/address.h"
#include "transports/shm/hello.h"
#include "transports/shm/layout.h"
#include "transports/store/all_gather.h"

using namespace kolo;
using namespace kolo::test;

namespace {

constexpr std::size_t kPage = 4096;

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
}

// Number of this process's shared-memory mappings that belong to kolo, and the bytes of them that
// are present.
struct Mapped {
  std::size_t count = 0;
  std::size_t present_bytes = 0;
};

Mapped mapped_regions() {
  Mapped mapped;
  std::ifstream file("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(file, line);) {
    const bool is_head = line.find('-') < line.find(' ');
    if (is_head) {
      is_ours = line.find("/memfd:kolo") != std::string::npos;
      mapped.count += is_ours ? 1 : 0;
    } else if (is_ours && line.starts_with("Rss:")) {
      mapped.present_bytes += std::stoul(line.substr(4)) * 1024;
    }
  }
  return mapped;
}

bool gives_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find("[always]") != std::string::npos || text.find("[within") != std::string::npos ||
         text.find("[force]") != std::string::npos;
}

// Fake rank 0 of two ranks that does one protocol step at a time.
class FakeRank {
 public:
  explicit FakeRank(const std::shared_ptr<Store>& store) {
    shm::EndpointAddress own;
    own.segment_bytes = ShmSettings{}.segment_bytes;
    own.host = posix::host_identity();
    own.socket = listener_->name();
    const auto texts = exchange(*store, 0, 2, "address", to_text(own), soon(), "play a rank");
    peer_ = shm::address_from_text(texts[1], 1);
  }

  void connect() { socket_ = posix::connect_unix(peer_.socket).value(); }

  // Sends the hello, with a region that announces one segment of eight bytes.
  void say_hello(std::uint64_t value) {
    const shm::Layout layout(peer_.segment_bytes);
    posix::SharedMemory region(layout.bytes());
    std::byte* const begin = region.bytes().data();
    auto* const header = new (begin) shm::Header;
    header->ranks[1] = 1;
    header->slots = static_cast<std::uint32_t>(layout.slots());
    header->segment_bytes = layout.segment_bytes();
    auto* const frame = reinterpret_cast<shm::Frame*>(begin + shm::Layout::frames_offset());
    std::memcpy(frame->tiny, &value, sizeof value);
    shm::Announcement announcement;
    announcement.tiny_segments = announcement.tiny_words = 1;
    frame->word.store(pack(announcement, 0));
    reinterpret_cast<shm::Control*>(begin + shm::Layout::control_offset())->closed.store(1);
    shm::Hello hello;
    std::copy(peer_.ticket, peer_.ticket + 2, hello.ticket);
    REQUIRE(posix::send_message(socket_.get(), std::as_bytes(std::span(&hello, 1)),
                                region.descriptor()));
  }

  void end() {
    listener_.reset();
    socket_.close();
  }

 private:
  std::optional<posix::UnixListener> listener_{std::in_place, 16};
  shm::EndpointAddress peer_;
  posix::Descriptor socket_;
};

std::uint64_t connections(Transport& rank, int peer) {
  return rank.channel(peer).statistics().connections;
}

}  // namespace

TEST_CASE(
    "the start costs a rank two descriptors and no shared memory, and a ring only its neighbours") {
  constexpr int kRanks = 16;
  const std::size_t descriptors = open_descriptors();
  const auto ranks = make_ranks(kRanks);
  CHECK(open_descriptors() == descriptors + 2 * kRanks);  // the listener, and the epoll descriptor
  CHECK(mapped_regions().count == 0);

  for (const auto& rank : ranks)
    send(*rank, (rank->rank() + 1) % kRanks, static_cast<std::uint64_t>(rank->rank()));
  for (const auto& rank : ranks) {
    const int before = (rank->rank() + kRanks - 1) % kRanks;
    CHECK(receive(*rank, before) == static_cast<std::uint64_t>(before));
  }
  for (const auto& rank : ranks) {  // hear the answers
    wait_until(
        *rank, [&] { return rank->channel((rank->rank() + 1) % kRanks).is_connected(); },
        "the next one's answer");
  }
  for (const auto& rank : ranks) {
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank->rank()) continue;
      const int distance = (peer - rank->rank() + kRanks) % kRanks;
      const bool is_neighbour = distance == 1 || distance == kRanks - 1;
      CHECK(rank->channel(peer).is_connected() == is_neighbour);
      CHECK(connections(*rank, peer) == (is_neighbour ? 1 : 0));
    }
  }
  // For a pair: both ends of a socket, and two regions that are each mapped by both ranks.
  CHECK(open_descriptors() == descriptors + 2 * kRanks + 2 * kRanks);
  CHECK(mapped_regions().count == 4 * kRanks);
  if (gives_huge_pages()) return;
  const std::size_t frame_pages = 1 + shm::Layout::frames_offset() / kPage;
  CHECK(mapped_regions().present_bytes <= 4 * kRanks * frame_pages * kPage);
}

TEST_CASE("two ranks that begin at once lose no data and continue with long segments") {
  const auto ranks = make_ranks(2);
  Transport& low = *ranks[0];
  Transport& high = *ranks[1];
  for (std::uint64_t value = 0; value < 4; ++value) {
    send(low, 1, value);
    send(high, 0, 10 + value);
  }
  for (std::uint64_t value = 0; value < 4; ++value) {
    CHECK(receive(high, 0) == value);
    CHECK(receive(low, 1) == 10 + value);
  }
  CHECK(connections(low, 1) == connections(high, 0));
  // Slots of both regions change owners, and memory is handed over beside them.
  const std::size_t bytes = low.channel(1).capabilities().segment_bytes;
  const auto shared = high.allocate(bytes);
  for (int i = 0; i < 100; ++i) {
    CAPTURE(i);
    std::vector<std::byte> out(bytes, static_cast<std::byte>(i));
    std::memset(shared.get(), 2 * i, bytes);
    std::vector<std::byte> in(bytes);
    REQUIRE(low.channel(1).send(out));
    REQUIRE(high.channel(0).send({shared.get(), bytes}));
    wait_until(
        high, [&] { return high.channel(0).receive(in); }, "a long segment at the high rank");
    CHECK(in == out);
    wait_until(
        low, [&] { return low.channel(1).receive(in); }, "a long segment at the low rank");
    CHECK(std::equal(in.begin(), in.end(), shared.get()));
    wait_until(
        high, [&] { return high.channel(0).is_drained(); }, "the end of its use");
  }
}

TEST_CASE("a sender may end before its peer has looked") {
  auto ranks = make_ranks(2);
  const int peer = GENERATE(0, 1);
  auto& sender = ranks[static_cast<std::size_t>(peer)];
  Transport& receiver = *ranks[static_cast<std::size_t>(1 - peer)];
  const std::vector<std::byte> data(20'000, std::byte{7});
  for (int i = 0; i < kMinimumCredit; ++i) REQUIRE(sender->channel(1 - peer).send(data));
  SECTION("the peer has not used the channel") {}
  SECTION("the peer has sent as well") { send(receiver, peer, 1); }
  sender.reset();
  std::vector<std::byte> in(data.size());
  for (int i = 0; i < kMinimumCredit; ++i) {
    wait_until(
        receiver, [&] { return receiver.channel(peer).receive(in); }, "what it sent before");
    CHECK(in == data);
  }
  const Error error = error_of([&] {
    wait_until(
        receiver, [&] { return receiver.channel(peer).receive(in); }, "its end");
  });
  CHECK(error.code() == ErrorCode::kPeerLost);
  CHECK(error.peer() == peer);
}

TEST_CASE("a client accepted before its hello may send it and end before the peer connects") {
  const auto store = make_local_store();
  std::unique_ptr<Transport> receiver;
  std::thread maker([&] { receiver = make_shm(request_for(1, 2, store)); });
  FakeRank sender(store);
  maker.join();
  sender.connect();
  std::uint64_t value = 0;
  const auto into = std::as_writable_bytes(std::span(&value, 1));
  // looks at once, and leaves the connection to the sender
  REQUIRE(!receiver->channel(0).receive(into));
  sender.say_hello(7);
  sender.end();
  static_cast<void>(receiver->arm());  // makes the outstanding connection
  receiver->disarm();
  wait_until(
      *receiver, [&] { return receiver->channel(0).receive(into); }, "what it sent before");
  CHECK(value == 7);
}

TEST_CASE("a rank that ended before its channel was used is found lost at the first use") {
  auto ranks = make_ranks(3);
  ranks[2].reset();
  for (int i = 0; i < 1000; ++i) ranks[0]->progress();  // it disturbs no other rank
  send(*ranks[0], 1, 5);
  CHECK(receive(*ranks[1], 0) == 5);
  const Error sending = error_of([&] { send(*ranks[0], 2, 5); });
  CHECK(sending.code() == ErrorCode::kPeerLost);
  CHECK(sending.peer() == 2);
  const Wait wait = GENERATE(Wait::kSpin, Wait::kSleep);
  const Error receiving = error_of([&] {
    wait_until(
        *ranks[1], [&] { return ranks[1]->channel(2).view(8) != nullptr; }, "a rank that is gone",
        wait);
  });
  CHECK(receiving.code() == ErrorCode::kPeerLost);
  CHECK_THAT(receiving.what(), ContainsSubstring("no process listens on its shm socket any more"));
}

TEST_CASE("the first segment of a peer wakes a sleeping rank, no matter which rank began") {
  const bool has_begun = GENERATE(false, true);
  CAPTURE(has_begun);
  const auto ranks = make_ranks(2);
  if (has_begun) send(*ranks[0], 1, 1);
  std::thread sleeper([&] {
    std::uint64_t value = 0;
    const auto into = std::as_writable_bytes(std::span(&value, 1));
    wait_until(
        *ranks[0], [&] { return ranks[0]->channel(1).receive(into); }, "the first", Wait::kSleep);
    wait_until(
        *ranks[0], [&] { return ranks[0]->channel(1).receive(into); }, "the second", Wait::kSleep);
  });
  send(*ranks[1], 0, 2);
  send(*ranks[1], 0, 3);
  sleeper.join();
}
