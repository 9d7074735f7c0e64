// Choice of the copy method for a long segment, by measured times.
#include "transports/shm/copy_choice.h"

#include <array>
#include <chrono>
#include <map>

#include "test/support/catch.h"

using namespace kolo::shm;
using std::chrono::nanoseconds;

namespace {

constexpr unsigned kSlots = way_bit(Way::kPlain) | way_bit(Way::kStreamed);

// Both sides of a channel whose copy methods take the times that are set here.
class Machine {
 public:
  std::array<int, kWays> writing_ns{};  // for one segment
  std::array<int, kWays> reading_ns{};

  // Sends `segments` segments and counts how many took each method.
  std::array<int, kWays> send(int segments, std::size_t bytes, bool is_received = true,
                              unsigned allowed = kEveryWay) {
    std::array<int, kWays> taken{};
    const std::size_t index = copy_class(bytes, is_received);
    for (int i = 0; i < segments; ++i) {
      const auto choice = chooser_.choose(
          index, allowed,
          [this](std::size_t c, Way way) -> unsigned { return reader_.of(c, way); });
      const auto way = static_cast<std::size_t>(choice.way);
      ++taken[way];
      timed += choice.is_timed ? 1 : 0;
      if (!choice.is_timed) continue;
      if (choice.way != Way::kSingle) {
        chooser_.add(index, choice.way, bytes, nanoseconds(writing_ns[way]));
      }
      reader_.add(index, choice.way, bytes, nanoseconds(reading_ns[way]));
    }
    return taken;
  }

  int timed = 0;

 private:
  CopyChooser chooser_;
  CopyTimes reader_;
};

}  // namespace

// A period has 2048 segments; the first 48 try each method in turn.
TEST_CASE("the method with the least total time is chosen, and all others are tried periodically") {
  Machine machine;
  machine.writing_ns = {20'000, 4'000, 0};
  machine.reading_ns = {5'000, 6'000, 11'000};
  CHECK(machine.send(4096, 64 * 1024) == std::array<int, kWays>{32, 4032, 32});
  machine.reading_ns = {5'000, 6'000, 9'000};
  CHECK(machine.send(2048, 64 * 1024) == std::array<int, kWays>{16, 16, 2016});
  machine.writing_ns = {2'000, 4'000, 0};
  CHECK(machine.send(2048, 64 * 1024) == std::array<int, kWays>{2016, 16, 16});
}

TEST_CASE("the plain method is chosen if times are equal or unknown") {
  Machine machine;
  machine.writing_ns = {1'000, 1'000, 0};
  machine.reading_ns = {1'000, 1'000, 2'000};
  CHECK(machine.send(2048, 8 * 1024) == std::array<int, kWays>{2016, 16, 16});
  CopyChooser chooser;
  for (int i = 0; i < 48; ++i) chooser.choose(0, kEveryWay, [](std::size_t, Way) { return 0U; });
  CHECK(chooser.choose(0, kEveryWay, [](std::size_t, Way) { return 0U; }).way == Way::kPlain);
}

TEST_CASE("a method that is not allowed is never tried") {
  Machine machine;
  machine.writing_ns = {9'000, 5'000, 0};
  machine.reading_ns = {9'000, 5'000, 1'000};
  CHECK(machine.send(256, 64 * 1024, false, kSlots)[2] == 0);
  CHECK(machine.send(256, 64 * 1024, false, way_bit(Way::kPlain)) ==
        std::array<int, kWays>{256, 0, 0});
}

TEST_CASE("the best allowed method is chosen if the best one is not allowed") {
  Machine machine;
  machine.writing_ns = {9'000, 5'000, 0};
  machine.reading_ns = {9'000, 5'000, 1'000};
  CHECK(machine.send(64, 64 * 1024)[2] == 32);
  for (int i = 0; i < 20; ++i) {
    CHECK(machine.send(1, 64 * 1024, true, kSlots) == std::array<int, kWays>{0, 1, 0});
    CHECK(machine.send(5, 64 * 1024)[0] == 0);
  }
}

TEST_CASE("one delayed copy does not change the choice") {
  Machine machine;
  machine.writing_ns = {20'000, 4'000, 0};
  machine.reading_ns = {5'000, 6'000, 50'000};
  machine.send(2048 + 31, 64 * 1024);
  machine.writing_ns[1] = 90'000'000;
  machine.send(1, 64 * 1024);  // the last trial of the streamed method
  machine.writing_ns[1] = 4'000;
  CHECK(machine.send(2048 - 32, 64 * 1024) == std::array<int, kWays>{0, 2000, 16});
}

TEST_CASE("only few segments are timed") {
  Machine machine;
  machine.writing_ns = machine.reading_ns = {1, 2, 3};
  machine.send(20'480, 64 * 1024);
  CHECK(machine.timed <= 10 * (9 + 32));
}

TEST_CASE("lengths and uses are measured separately") {
  CHECK(copy_class(4 * 1024, false) == 0);
  CHECK(copy_class(8 * 1024 - 1, false) == 0);
  CHECK(copy_class(8 * 1024, false) == 1);
  CHECK(copy_class(16 * 1024, false) == 2);
  CHECK(copy_class(32 * 1024, false) == 3);
  CHECK(copy_class(std::size_t{1} << 30, false) == 3);
  CHECK(copy_class(4 * 1024, true) == 4);
  CHECK(copy_class(std::size_t{1} << 30, true) == 7);
  CHECK(PublishedTimes::index(7, Way::kSingle) / 4 < PublishedTimes::kWords);
}
