// Which way a long segment takes: chosen by what the ways take here and now.
//
// It depends on how far apart the two cores are, which the host of a virtual machine changes within
// minutes. Near, plain stores into a slot that stays in cache are the quickest. Far, every such
// store waits for its line to come from the other core: streaming stores, which do not, take a
// third to a quarter of the time, and the kernel's copy is not far behind (bench/results). So both
// sides time what they do of segments that the sender marks; the receiver publishes its times; and
// the sender takes the way whose sum is the least, but for a few segments of every period, which
// take the others, to keep the figures fresh.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace kolo::shm {

enum class Way : std::uint8_t {
  kPlain,     // into a slot
  kStreamed,  // into a slot, by streaming stores
  kSingle,    // by the kernel, straight from the sender's memory; only where it is received
};
inline constexpr std::size_t kWays = 3;

constexpr unsigned way_bit(Way way) { return 1U << static_cast<unsigned>(way); }
inline constexpr unsigned kEveryWay = (1U << kWays) - 1;

// Shorter ones go into a slot, and nobody asks how.
inline constexpr std::size_t kShortestChoice = 4 * 1024;

// Segments that are judged apart: by length (4, 8, 16, 32 KiB or more), and by whether they are
// received or read in view (reduced, as a rule).
inline constexpr std::size_t kLengthClasses = 4;
inline constexpr std::size_t kCopyClasses = 2 * kLengthClasses;

constexpr std::size_t copy_class(std::size_t bytes, bool is_received) {
  const auto steps = static_cast<std::size_t>(std::bit_width(bytes / kShortestChoice));
  const std::size_t length = std::min(std::max<std::size_t>(steps, 1), kLengthClasses) - 1;
  return length + (is_received ? kLengthClasses : 0);
}

// What one side's part of each way takes, for each class: the medians of the last three times.
class CopyTimes {
 public:
  using Duration = std::chrono::nanoseconds;

  // In 1/1000 ns for a byte, from 1; 0: not known.
  std::uint16_t add(std::size_t copy_class, Way way, std::size_t bytes, Duration time) {
    Times& times = times_[copy_class][static_cast<std::size_t>(way)];
    const double picoseconds =
        1000.0 * static_cast<double>(time.count()) / static_cast<double>(bytes);
    times.kept[times.count++ % kKept] =
        static_cast<std::uint16_t>(std::clamp(picoseconds, 1.0, 65535.0));
    return of(copy_class, way);
  }

  std::uint16_t of(std::size_t copy_class, Way way) const {
    const Times& times = times_[copy_class][static_cast<std::size_t>(way)];
    if (times.count < kKept) return 0;
    auto sorted = times.kept;
    std::sort(sorted.begin(), sorted.end());
    return sorted[kKept / 2];
  }

 private:
  static constexpr std::size_t kKept = 3;  // so one that was preempted does not count

  struct Times {
    std::array<std::uint16_t, kKept> kept{};
    std::size_t count = 0;
  };

  std::array<std::array<Times, kWays>, kCopyClasses> times_{};
};

// The receiver's, in shared words of four.
struct PublishedTimes {
  static constexpr std::size_t kWords = kCopyClasses * kWays / 4;
  static constexpr std::size_t index(std::size_t copy_class, Way way) {
    return copy_class * kWays + static_cast<std::size_t>(way);
  }
};

// The sender's choice.
class CopyChooser {
 public:
  struct Choice {
    Way way = Way::kPlain;
    bool is_timed = false;
  };

  // `allowed`: a set of ways, kPlain among them. `theirs(class, way)`: the receiver's time.
  template <typename Theirs>
  Choice choose(std::size_t copy_class, unsigned allowed, const Theirs& theirs) {
    State& state = states_[copy_class];
    const std::uint64_t position = state.sent++ % kPeriod;
    if (position < kTrials * kWays) {
      const Way way = static_cast<Way>(position / kTrials);
      if ((allowed & way_bit(way)) != 0) return {way, position % kTrials >= kWarmUp};
    }
    if (position % kLookEvery == 0) state.best = best(copy_class, allowed, theirs);
    if ((allowed & way_bit(state.best)) == 0) state.best = best(copy_class, allowed, theirs);
    return {state.best, position % kTimeEvery == 0};
  }

  // The sender's own part; a single copy has none.
  void add(std::size_t copy_class, Way way, std::size_t bytes, CopyTimes::Duration time) {
    times_.add(copy_class, way, bytes, time);
  }

 private:
  static constexpr std::uint64_t kPeriod = 2048;
  // Of each way. A slot that was filled in another way is not yet as this one leaves it.
  static constexpr std::uint64_t kTrials = 16;
  static constexpr std::uint64_t kWarmUp = kTrials - 3;
  static constexpr std::uint64_t kLookEvery = 8;
  static constexpr std::uint64_t kTimeEvery = 64;

  struct State {
    std::uint64_t sent = 0;
    Way best = Way::kPlain;
  };

  template <typename Theirs>
  Way best(std::size_t copy_class, unsigned allowed, const Theirs& theirs) const {
    Way best = Way::kPlain;
    unsigned least = 0;
    for (const Way way : {Way::kPlain, Way::kStreamed, Way::kSingle}) {
      if ((allowed & way_bit(way)) == 0) continue;
      const unsigned reading = theirs(copy_class, way);
      const unsigned writing = way == Way::kSingle ? 0 : times_.of(copy_class, way);
      if (reading == 0 || (writing == 0 && way != Way::kSingle)) continue;
      if (least != 0 && reading + writing >= least) continue;
      least = reading + writing;
      best = way;
    }
    return best;
  }

  CopyTimes times_;
  std::array<State, kCopyClasses> states_{};
};

}  // namespace kolo::shm
