// Decorators over channels with preposted receives.
#include "transports/base/preposted_receives.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/transports/decorators/pair.h"
#include "transports/decorators/fault.h"
#include "transports/decorators/forwarding.h"
#include "transports/decorators/shape.h"
#include "transports/decorators/trace.h"
#include "transports/error.h"

using namespace kolo;
using namespace kolo::test;
using namespace std::chrono_literals;

namespace {

using Bytes = std::vector<std::byte>;
using Told = std::vector<std::pair<std::size_t, std::span<std::byte>>>;

constexpr std::size_t kAhead = 3;

// Records the preposted receives.
class NotingChannel final : public decorators::ForwardingChannel, public PrepostedReceives {
 public:
  NotingChannel(Channel& inner, Told& told) : ForwardingChannel(inner), told_(told) {}

  std::size_t expected_segments() const override { return kAhead; }
  bool expect(std::size_t ahead, std::span<std::byte> into) override {
    told_.emplace_back(ahead, into);
    return true;
  }

 private:
  Told& told_;
};

class NotingTransport final : public decorators::ForwardingTransport<NotingChannel> {
 public:
  NotingTransport(std::unique_ptr<Transport> inner, Told& told)
      : ForwardingTransport(std::move(inner)) {
    add_channels(told);
  }
};

using Decorate = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

// Rank 1's channel records into `told` the preposted receives that pass the decorator.
Ends noting(Told& told, const Decorate& decorate) {
  return make_pair([&](std::unique_ptr<Transport> inner) {
    if (inner->rank() == 1) inner = std::make_unique<NotingTransport>(std::move(inner), told);
    return decorate(std::move(inner));
  });
}

PrepostedReceives* expecting(Transport& transport, int peer) {
  return dynamic_cast<PrepostedReceives*>(&transport.channel(peer));
}

Decorate faulty(const std::string& plan) {
  return [plan](std::unique_ptr<Transport> inner) {
    return make_faulty(std::move(inner), parse_faults(plan));
  };
}

}  // namespace

TEST_CASE("fault and trace forward preposted receives to a channel that supports them") {
  std::string folder = (std::filesystem::temp_directory_path() / "kolo-expecting-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const Decorate traced = [&](std::unique_ptr<Transport> inner) {
    return make_traced(std::move(inner), folder + "/trace");
  };
  for (const Decorate& decorate : {faulty("stall@segment=100,for=1ms"), traced}) {
    Told told;
    const Ends ends = noting(told, decorate);
    CHECK(expecting(*ends[0], 1) == nullptr);
    PrepostedReceives* const in = expecting(*ends[1], 0);
    REQUIRE(in != nullptr);
    CHECK(in->expected_segments() == kAhead);
    Bytes place(10);
    CHECK(in->expect(2, place));
    CHECK(in->expect(3, {}));
    REQUIRE(told.size() == 2);
    CHECK((told[0].first == 2 && told[0].second.data() == place.data()));
    CHECK((told[1].first == 3 && told[1].second.empty()));
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a storm refuses preposted receives as often as planned, and then forwards them") {
  Told told;
  const Ends ends = noting(told, faulty("storm@times=3,on=in"));
  PrepostedReceives* const in = expecting(*ends[1], 0);
  REQUIRE(in != nullptr);
  Bytes data(8);
  int refused = 0;
  for (std::size_t segment = 0; segment < 40; ++segment) {
    for (int times = 0; !in->expect(0, data); ++times) {
      REQUIRE(times < 3);
      ++refused;
    }
    CHECK(told.size() == segment + 1);
    while (!ends[0]->channel(1).send(data)) {
    }
    while (!ends[1]->channel(0).receive(data)) {
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("a lost channel takes no preposted receives") {
  Told told;
  const Ends ends = noting(told, faulty("lose@rank=1,segment=1"));
  Bytes place(8);
  CHECK_THROWS_AS(ends[1]->channel(0).receive(place), Error);
  CHECK_THROWS_AS(expecting(*ends[1], 0)->expect(0, place), Error);
  CHECK(told.empty());
}

TEST_CASE(
    "a shaped channel preposts its pieces, and changes the caller's memory only when they are "
    "due") {
  const auto start = Clock::now();
  auto now = start;
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  Told told;
  const Ends ends = noting(told, [&](std::unique_ptr<Transport> inner) {
    ShapeSurroundings surroundings;
    surroundings.longest_segment_bytes = kLongest;
    surroundings.now = [&now] { return now; };
    return make_shaped(std::move(inner), parse_shape("1Gbit,1ms"), surroundings);
  });
  CHECK(expecting(*ends[1], 0) == nullptr);
  const std::size_t piece = ends[0]->channel(1).capabilities().preferred_segment_bytes;
  const std::size_t bytes = 16 * piece - 1;
  REQUIRE(bytes <= kLongest);
  const Bytes sent(bytes, std::byte{1});
  Bytes got(bytes, std::byte{0});
  REQUIRE(ends[0]->channel(1).send(sent));
  const auto due = start + 1ms + std::chrono::nanoseconds(8 * bytes);
  for (int i = 0; i < 100; ++i) {
    now = i < 50 ? start : due - 1ns;
    ends[0]->progress();
    CHECK_FALSE(ends[1]->channel(0).receive(got));
  }
  CHECK(std::ranges::all_of(got, [](std::byte each) { return each == std::byte{0}; }));
  now = due;
  CHECK(ends[1]->channel(0).receive(got));
  CHECK(got == sent);
  REQUIRE(told.size() > kAhead);
  for (std::size_t i = 0; i <= kAhead; ++i) CHECK(told[i].first == i);
  for (std::size_t i = 1; i <= kAhead; ++i)
    CHECK(told[i].second.data() == told[i - 1].second.data() + piece);
  for (const auto& [ahead, place] : told) {
    CHECK((place.size() == piece || place.size() == piece - 1));
    CHECK((place.data() + place.size() <= got.data() || place.data() >= got.data() + got.size()));
  }
}
