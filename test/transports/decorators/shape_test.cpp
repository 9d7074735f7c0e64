// The shaping decorator on a clock that the test sets: exact arrival times, to the nanosecond.
#include "transports/decorators/shape.h"

#include <poll.h>
#include <algorithm>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/decorators/pair.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;
using namespace std::chrono_literals;

namespace {

using Bytes = std::vector<std::byte>;

// Two shaped ends with a common clock.
class Shaped {
 public:
  explicit Shaped(const std::string& text, std::size_t longest_segment_bytes = 0)
      : start_(Clock::now()), now_(start_) {
    ends_ = make_pair([&](std::unique_ptr<Transport> inner) {
      ShapeSurroundings surroundings;
      surroundings.longest_segment_bytes = longest_segment_bytes;
      surroundings.now = [this] { return now_; };
      return make_shaped(std::move(inner), parse_shape(text), surroundings);
    });
  }

  void set_time(std::chrono::nanoseconds since_start) { now_ = start_ + since_start; }
  std::chrono::nanoseconds time() const { return now_ - start_; }
  Transport& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }
  Channel& out() { return end(0).channel(1); }
  Channel& in() { return end(1).channel(0); }

  bool sends(std::size_t bytes) { return out().send(Bytes(bytes)); }

  bool receives(std::size_t bytes) {
    end(0).progress();
    Bytes into(bytes);
    return in().receive(into);
  }

  // The arrival times of segments of `bytes`, found in steps.
  std::vector<std::chrono::nanoseconds> arrivals(int segments, std::size_t bytes,
                                                 std::chrono::nanoseconds step) {
    std::vector<std::chrono::nanoseconds> times;
    int sent = 0;
    while (static_cast<int>(times.size()) < segments) {
      while (sent < segments && sends(bytes)) ++sent;
      while (receives(bytes)) times.push_back(time());
      set_time(time() + step);
    }
    return times;
  }

 private:
  Clock::time_point start_;
  Clock::time_point now_;
  Ends ends_;
};

}  // namespace

TEST_CASE("a segment arrives when its last byte has been transmitted, and not before") {
  Shaped shaped("1Gbit,1ms");
  REQUIRE(shaped.sends(1000));  // 8 us on the wire
  CHECK_FALSE(shaped.receives(1000));
  shaped.set_time(1008us - 1ns);
  CHECK_FALSE(shaped.receives(1000));
  shaped.set_time(1008us);
  CHECK(shaped.receives(1000));
}

TEST_CASE("consecutive segments arrive at the wire's rate, independent of the delay") {
  Shaped shaped("1Gbit,1ms");
  for (int i = 0; i < 4; ++i) REQUIRE(shaped.sends(1000));
  for (int i = 1; i <= 4; ++i) {
    shaped.set_time(1ms + i * 8us - 1ns);
    CHECK_FALSE(shaped.receives(1000));
    shaped.set_time(1ms + i * 8us);
    CHECK(shaped.receives(1000));
  }
}

TEST_CASE("a link of long delay is kept full: many bytes are in flight at once") {
  Shaped shaped("1Gbit,50ms");
  constexpr int kSegments = 400;
  constexpr std::size_t kBytes = 64 * 1024;
  const auto times = shaped.arrivals(kSegments, kBytes, 100us);
  const auto ideal = 50ms + kSegments * kBytes * 8ns;
  CHECK(times.back() >= ideal);
  CHECK(times.back() <= ideal + 300us);
}

TEST_CASE("a segment longer than the limit below is split into pieces and arrives whole") {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  Shaped shaped("1Gbit,10ms", kLongest);
  const std::size_t below = shaped.out().capabilities().preferred_segment_bytes;
  REQUIRE(below < kLongest);
  CHECK(shaped.out().capabilities().segment_bytes == kLongest);
  std::vector<Bytes> sent;
  std::vector<Bytes> received;
  for (const std::size_t bytes : {kLongest, std::size_t{10}, std::size_t{0}, 3 * below + 1}) {
    Bytes& data = sent.emplace_back(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + (i >> 12));
  }
  std::size_t asked = 0;
  std::vector<std::chrono::nanoseconds> times;
  while (received.size() < sent.size()) {
    while (asked < sent.size() && shaped.out().send(sent[asked])) ++asked;
    shaped.end(0).progress();
    Bytes into(sent[received.size()].size());
    if (shaped.in().receive(into)) {
      received.push_back(std::move(into));
      times.push_back(shaped.time());
    } else {
      shaped.set_time(shaped.time() + 10us);
      REQUIRE(shaped.time() < 10s);
    }
  }
  CHECK(received == sent);
  const auto first = 10ms + static_cast<std::int64_t>(kLongest) * 8ns;
  CHECK(times.front() >= first);
  CHECK(times.front() <= first + 20us);
  CHECK(times.back() >= first + static_cast<std::int64_t>(3 * below + 11) * 8ns);
}

TEST_CASE("the segment length is that of the channel below if not all pairs have one shape") {
  for (const std::string text : {"1Gbit,10ms+0to1:1ms", "hosts:1Gbit,10ms"}) {
    Shaped shaped(text, std::size_t{1} << 20);
    const Capabilities& can = shaped.out().capabilities();
    CHECK(can.segment_bytes == can.preferred_segment_bytes);
  }
}

TEST_CASE("a sender that is ahead of its wire must wait until the wire has caught up") {
  Shaped shaped("100Kbit");  // 80 us a byte
  for (int i = 0; i < kMinimumCredit; ++i) CHECK(shaped.sends(1000));
  CHECK_FALSE(shaped.sends(1000));
  CHECK(shaped.out().reserve(1000) == nullptr);
  shaped.set_time(80ms - 1ns);
  CHECK_FALSE(shaped.sends(1000));
  shaped.set_time(80ms);
  CHECK(shaped.sends(1000));
  CHECK_FALSE(shaped.sends(1000));
}

TEST_CASE("a shaped channel does not answer, and reports its rate and delay") {
  Shaped shaped("1Gbit,1ms");
  const Capabilities& can = shaped.out().capabilities();
  CHECK_FALSE(can.can_answer);
  CHECK(can.bandwidth_GBps == 0.125);
  CHECK(can.latency_us >= 1000);
  CHECK(shaped.end(0).name() == "inproc,1Gbit,1ms");
}

TEST_CASE("a pair without a shape uses the channel below with all its capabilities") {
  Shaped shaped("1Gbit,1ms+0-1:off");
  CHECK(shaped.out().capabilities().can_answer);
  CHECK(shaped.sends(1000));
  CHECK(shaped.receives(1000));
}

TEST_CASE("one direction may be shaped and the other not") {
  Shaped shaped("off+0to1:1ms");
  REQUIRE(shaped.sends(10));
  Bytes into(10);
  REQUIRE(shaped.end(1).channel(0).send(into));
  CHECK(shaped.end(0).channel(1).receive(into));
  CHECK_FALSE(shaped.receives(10));
  shaped.set_time(1ms);
  CHECK(shaped.receives(10));
}

TEST_CASE("jitter follows from the seed, stays within its bounds, and keeps the order") {
  const auto times_of = [](const std::string& text) { return Shaped(text).arrivals(50, 8, 1us); };
  const auto times = times_of("1ms,jitter=300us,seed=4");
  CHECK(times == times_of("1ms,jitter=300us,seed=4"));
  CHECK(times != times_of("1ms,jitter=300us,seed=5"));
  CHECK(std::is_sorted(times.begin(), times.end()));
  CHECK(times.front() >= 1ms);
  CHECK(times.front() != times.back());
}

TEST_CASE("a ready segment can be read only with its own length") {
  Shaped shaped("1ms");
  REQUIRE(shaped.sends(10));
  shaped.set_time(1ms);
  try {
    shaped.in().view(11);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kMismatch);
    CHECK_THAT(error.what(), ContainsSubstring("10 bytes where 11 were expected"));
  }
}

TEST_CASE("a sleeping rank is woken when a segment is due, and not before") {
  Shaped shaped("10s");
  REQUIRE(shaped.sends(10));
  Transport& receiver = shaped.end(1);
  for (int i = 0; i < 3 && !receiver.arm(); ++i) receiver.progress();
  pollfd watched{receiver.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  receiver.disarm();
  shaped.set_time(10s);
  CHECK_FALSE(receiver.arm());
  CHECK(shaped.receives(10));
}

TEST_CASE("the timer wakes a sleeping rank by itself") {
  const auto ends = make_pair([](std::unique_ptr<Transport> inner) {
    return make_shaped(std::move(inner), parse_shape("30ms"), {});
  });
  Bytes data(10);
  REQUIRE(ends[0]->channel(1).send(data));
  const auto deadline = Clock::now() + 60s;
  while (!ends[1]->channel(0).receive(data)) {
    REQUIRE(Clock::now() < deadline);
    ends[1]->progress();
    if (!ends[1]->arm()) continue;
    pollfd watched{ends[1]->descriptor(), POLLIN, 0};
    CHECK(::poll(&watched, 1, 60'000) == 1);
    ends[1]->disarm();
  }
}
