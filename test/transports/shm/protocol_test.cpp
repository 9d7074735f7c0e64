// A peer that writes invalid data into the shared memory causes an error, and nothing else.
#include <cstring>
#include <functional>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/shm/ranks.h"
#include "transports/error.h"
#include "transports/shm/layout.h"

using namespace kolo;
using namespace kolo::shm;
using namespace kolo::test;

namespace {

constexpr std::size_t kSegment = 4096;
constexpr std::size_t kBytes = 1000;

// Two ranks, and rank 1's view of rank 0's region: a view lies in a slot, and the header is a known
// distance before it.
struct Pair {
  std::unique_ptr<Transport> low;
  std::unique_ptr<Transport> high;
  std::byte* memory = nullptr;

  Channel& of_high() { return high->channel(0); }
  Frame& frame_of_low(std::uint64_t number) {
    return reinterpret_cast<Frame*>(memory + Layout::frames_offset())[number % kFrames];
  }
  Control& control_of_low() {
    return *reinterpret_cast<Control*>(memory + Layout::control_offset());
  }
};

Pair make_pair() {
  const auto store = make_local_store();
  ShmSettings settings;
  settings.segment_bytes = kSegment;
  Pair pair;
  std::thread low([&] { pair.low = make_shm(request_for(0, 2, store), settings); });
  pair.high = make_shm(request_for(1, 2, store), settings);
  low.join();
  std::byte* const slot = pair.low->channel(1).reserve(kBytes);
  std::memset(slot, 1, kBytes);
  pair.low->channel(1).commit();
  const std::byte* view = nullptr;
  wait_until(
      *pair.high, [&] { return (view = pair.of_high().view(kBytes)) != nullptr; }, "a segment");
  pair.memory = const_cast<std::byte*>(view) - Layout(kSegment).slot_offset(0);  // the first is 0
  REQUIRE(reinterpret_cast<Header*>(pair.memory)->magic == kMagic);
  pair.of_high().release();
  return pair;
}

void send(Channel& channel) {
  std::byte* const slot = channel.reserve(kBytes);
  REQUIRE(slot != nullptr);
  std::memset(slot, 2, kBytes);
  channel.commit();
}

std::string text_of_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kProtocol);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a segment announced in a slot of the receiver is an error") {
  Pair pair = make_pair();
  send(pair.of_high());
  const int slots = Layout(kSegment).slots();
  Announcement announcement;
  announcement.has_slot = true;
  // never sent: still free at the high rank
  announcement.slot = static_cast<unsigned>(2 * slots - 1);
  announcement.slot_bytes = kBytes;
  pair.frame_of_low(1).word.store(pack(announcement, 1));
  CHECK(text_of_error([&] { pair.of_high().view(kBytes); }).find("not its own") !=
        std::string::npos);
}

TEST_CASE("a returned slot that its owner already has, or that does not exist, is an error") {
  for (const unsigned slot : {15U, 3U}) {
    Pair pair = make_pair();
    const bool is_own = slot == 15;
    // All credit is used, so that the next reserve looks for returned slots.
    for (int i = 0; i < Layout(kSegment).slots(); ++i) send(pair.of_high());
    pair.control_of_low().returned.set(0, slot);
    pair.control_of_low().returned.set(1, slot);
    pair.control_of_low().consumed.store(2);
    const std::string error = text_of_error([&] { pair.of_high().reserve(kBytes); });
    INFO(slot << (is_own ? ", the owner's" : ", the peer's") << ": " << error);
    CHECK(error.find("not its own") != std::string::npos);  // the second time at the latest
  }
}

TEST_CASE("a frame with an impossible announcement is an error") {
  Announcement announcement;
  announcement.slot_bytes = kBytes;
  SECTION("nothing") {}
  SECTION("an answer to nothing") { announcement.is_answered = true; }
  SECTION("an offer without a segment") { announcement.is_offered = true; }
  Pair pair = make_pair();
  pair.frame_of_low(1).word.store(pack(announcement, 1));
  CHECK(text_of_error([&] { pair.of_high().view(kBytes); }).find("an invalid segment") !=
        std::string::npos);
}
