// Arrivals from UCX: delivered in the order of their numbers, each to its destination.
#include "transports/ucx/inbox.h"

#include <cstring>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/transports/ucx/fake_ucx.h"

using namespace kolo;
using namespace kolo::test;
using ucx::Inbox;
using Taken = ucx::Inbox::Taken;

namespace {

constexpr std::size_t kLongest = 128 * 1024;
constexpr int kPeer = 1;

struct Arrivals {
  explicit Arrivals(std::size_t longest_bytes = kLongest)
      : inbox(worker, liveness, kPeer, longest_bytes) {}

  posix::Epoll epoll;
  ucx::HostLiveness liveness{2, epoll};
  ucx::Worker worker{fake_library(), 2};
  Inbox inbox;

  ucs_status_t eager(std::uint32_t number, std::string_view text) {
    return inbox.accept(number, text.data(), text.size(), 0);
  }
  ucs_status_t offer(std::uint32_t number, void* offered, std::size_t bytes) {
    return inbox.accept(number, offered, bytes, UCP_AM_RECV_ATTR_FLAG_RNDV);
  }
  std::string receive(std::size_t bytes) {
    std::string text(bytes, '?');
    const auto taken = inbox.receive(std::as_writable_bytes(std::span(text)));
    return taken == Taken::kYes ? text : "not yet";
  }
};

void finish(const FakeUcx::Fetch& fetch, ucs_status_t status = UCS_OK) {
  if (status == UCS_OK) std::memset(fetch.into, 'f', fetch.bytes);
  int request = 0;
  fetch.callback(&request, status, fetch.bytes, fetch.user_data);
}

}  // namespace

TEST_CASE("segments that overtake each other are received in the order of their numbers") {
  Arrivals arrivals;
  CHECK(arrivals.eager(1, "second") == UCS_OK);
  CHECK(arrivals.inbox.view(5) == Taken::kNotYet);
  CHECK(arrivals.eager(0, "first") == UCS_OK);
  CHECK(arrivals.receive(5) == "first");
  CHECK(arrivals.receive(6) == "second");
  CHECK(arrivals.inbox.released() == 2);
}

TEST_CASE("a segment that is waited for is copied directly to its destination") {
  Arrivals arrivals;
  std::string place(4, '?');
  const auto bytes = std::as_writable_bytes(std::span(place));
  CHECK(arrivals.inbox.receive(bytes) == Taken::kNotYet);
  CHECK(arrivals.eager(0, "here") == UCS_OK);
  CHECK(place == "here");
  CHECK(arrivals.inbox.receive(bytes) == Taken::kYes);
}

TEST_CASE("a short offer is fetched at once, a long one into the receiver's memory") {
  Arrivals arrivals;
  int short_one = 0;
  int long_one = 0;
  CHECK(arrivals.offer(0, &short_one, 1000) == UCS_INPROGRESS);
  CHECK(arrivals.offer(1, &long_one, kLongest) == UCS_INPROGRESS);
  REQUIRE(played().fetches.size() == 1);
  CHECK(played().fetches[0].offer == &short_one);
  finish(played().fetches[0]);
  CHECK(arrivals.receive(1000) == std::string(1000, 'f'));
  std::vector<std::byte> place(kLongest);
  CHECK(arrivals.inbox.receive(place) == Taken::kNotYet);
  REQUIRE(played().fetches.size() == 2);
  CHECK(played().fetches[1].into == place.data());
  finish(played().fetches[1]);
  CHECK(arrivals.inbox.receive(place) == Taken::kYes);
}

TEST_CASE("an empty offer can be viewed like any other") {
  Arrivals arrivals;
  int offered = 0;
  SECTION("viewed") {}
  SECTION("received as no bytes, then viewed") {
    CHECK(arrivals.inbox.receive({}) == Taken::kNotYet);
  }
  arrivals.offer(0, &offered, 0);
  REQUIRE(played().fetches.size() == 1);
  finish(played().fetches[0]);
  CHECK(arrivals.inbox.view(0) == Taken::kYes);
  CHECK(arrivals.inbox.data() != nullptr);
}

TEST_CASE("long offers are fetched ahead for a receiver that uses views") {
  Arrivals arrivals;
  CHECK(arrivals.inbox.view(10) == Taken::kNotYet);
  int offered = 0;
  arrivals.offer(0, &offered, kLongest);
  REQUIRE(played().fetches.size() == 1);
  CHECK(arrivals.inbox.view(kLongest) == Taken::kNotYet);
  finish(played().fetches[0]);
  CHECK(arrivals.inbox.view(kLongest) == Taken::kYes);
  CHECK(arrivals.inbox.data()[kLongest - 1] == std::byte{'f'});
}

TEST_CASE("data that UCX lets the receiver keep is viewed in place, and released") {
  Arrivals arrivals;
  alignas(kSegmentAlignment) std::byte kept[4096] = {};
  CHECK(arrivals.inbox.accept(0, kept, sizeof kept, UCP_AM_RECV_ATTR_FLAG_DATA) == UCS_INPROGRESS);
  CHECK(arrivals.inbox.view(sizeof kept) == Taken::kYes);
  CHECK(arrivals.inbox.data() == kept);
  arrivals.inbox.release();
  CHECK(played().released == std::vector<void*>{kept});
}

TEST_CASE("a segment outside the window, sent twice or too long is a fault without side effects") {
  const std::vector<std::byte> too_long(kLongest + 1);
  Arrivals arrivals;
  SECTION("after the window") { arrivals.eager(ucx::kWindow, "x"); }
  SECTION("before the window") { arrivals.eager(0xffffffff, "x"); }
  SECTION("twice") {
    arrivals.eager(0, "x");
    arrivals.eager(0, "y");
    CHECK(arrivals.receive(1) == "x");
  }
  SECTION("too long") { arrivals.inbox.accept(0, too_long.data(), too_long.size(), 0); }
  CHECK(arrivals.inbox.is_faulty());
}

TEST_CASE("a segment of an unexpected length is padded with zeros or cut") {
  Arrivals arrivals;
  arrivals.eager(0, "abc");
  arrivals.eager(1, "abcdef");
  CHECK(arrivals.receive(5) == std::string("abc\0\0", 5));
  CHECK(arrivals.receive(2) == "ab");
}

// Under a sanitizer such a request ends the process.
TEST_CASE("a segment that there is no memory for is a failure, and nothing is thrown into UCX") {
  if (kIsSanitized) return;
  Arrivals arrivals(std::size_t{1} << 60);
  std::vector<std::byte> place(1000);
  SECTION("sent as a whole") {
    CHECK(arrivals.eager(0, "x") == UCS_OK);
    CHECK(arrivals.inbox.view(1) == Taken::kFailed);
    CHECK(arrivals.inbox.receive(place) == Taken::kFailed);
    CHECK(arrivals.inbox.failure() == UCS_ERR_NO_MEMORY);
  }
  SECTION("offered: it waits for the receiver's memory") {
    int offered = 0;
    CHECK(arrivals.offer(0, &offered, place.size()) == UCS_INPROGRESS);
    CHECK(played().fetches.empty());
    CHECK(arrivals.inbox.receive(place) == Taken::kNotYet);
    REQUIRE(played().fetches.size() == 1);
    CHECK(played().fetches[0].into == place.data());
  }
}

TEST_CASE("a failed fetch is reported as often as the segment is requested") {
  Arrivals arrivals;
  int offered = 0;
  arrivals.offer(0, &offered, 1000);
  finish(played().fetches.at(0), UCS_ERR_CONNECTION_RESET);
  std::vector<std::byte> place(1000);
  CHECK(arrivals.inbox.receive(place) == Taken::kFailed);
  CHECK(arrivals.inbox.receive(place) == Taken::kFailed);
  CHECK(arrivals.inbox.failure() == UCS_ERR_CONNECTION_RESET);
}

TEST_CASE("data fetched from a lost peer becomes valid once it is confirmed") {
  posix::Epoll epoll;
  ucx::HostLiveness peers(2, epoll);
  Arrivals arrivals;
  REQUIRE(arrivals.liveness.watch(kPeer, peers.name(), {}));
  int offered = 0;
  arrivals.offer(0, &offered, 1000);
  peers.part([](const ucx::Farewell&) { return std::nullopt; });
  CHECK_FALSE(arrivals.liveness.is_alive(kPeer));
  finish(played().fetches.at(0));
  CHECK(arrivals.receive(1000) == "not yet");
  arrivals.inbox.believe(1);
  CHECK(arrivals.inbox.has_all(1));
  CHECK(arrivals.receive(1000) == std::string(1000, 'f'));
}
