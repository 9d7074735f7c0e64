// Choice of the copy method for a long segment, by times measured during the run.
//
// The best method depends on the distance of the two cores, and the host of a virtual machine may
// change that within minutes. For near cores, plain stores into a cached slot are the fastest. For
// far cores, each such store waits for its line from the other core. Streaming stores do not wait:
// they take a third to a quarter of the time, and the kernel's copy little more (bench/results).
//
// So both sides time their part of the segments that the sender marks. The receiver publishes its
// times. The sender takes the method with the least sum. A few segments of every period take the
// other methods, to keep their times up to date.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace kolo::inline v0::shm {

enum class Way : std::uint8_t {
  kPlain,     // into a slot
  kStreamed,  // into a slot, by streaming stores
  kSingle,    // by the kernel, straight from the sender's memory; only for receive()
};
inline constexpr std::size_t kWays = 3;

constexpr unsigned way_bit(Way way) { return 1U << static_cast<unsigned>(way); }
inline constexpr unsigned kEveryWay = (1U << kWays) - 1;

// Shorter segments always go into a slot by plain stores.
inline constexpr std::size_t kShortestChoice = 4 * 1024;

// Number of segment classes. Times are kept per class. A class is a length (from 4, 8, 16 or 32 KiB
// on) and the receiver's call: receive(), or view(), after which it mostly reduces the segment.
inline constexpr std::size_t kLengthClasses = 4;
inline constexpr std::size_t kCopyClasses = 2 * kLengthClasses;

constexpr std::size_t copy_class(std::size_t bytes, bool is_received) {
  const auto steps = static_cast<std::size_t>(std::bit_width(bytes / kShortestChoice));
  const std::size_t length = std::min(std::max<std::size_t>(steps, 1), kLengthClasses) - 1;
  return length + (is_received ? kLengthClasses : 0);
}

// Times of one side's part of each method, for each class: the medians of the last three.
class CopyTimes {
 public:
  using Duration = std::chrono::nanoseconds;

  // Returns picoseconds per byte, at least 1; 0 if unknown.
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
  static constexpr std::size_t kKept = 3;  // the median ignores one preempted copy

  struct Times {
    std::array<std::uint16_t, kKept> kept{};
    std::size_t count = 0;
  };

  std::array<std::array<Times, kWays>, kCopyClasses> times_{};
};

// Layout of the receiver's times in shared memory: four per word.
struct PublishedTimes {
  static constexpr std::size_t kWords = kCopyClasses * kWays / 4;
  static constexpr std::size_t index(std::size_t copy_class, Way way) {
    return copy_class * kWays + static_cast<std::size_t>(way);
  }
};

// Chooses the method, on the sender's side.
class CopyChooser {
 public:
  struct Choice {
    Way way = Way::kPlain;
    bool is_timed = false;
  };

  // `allowed`: a bit set of methods with kPlain. `theirs(class, way)`: the receiver's time.
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

  // Adds a time of the sender's own part. A single copy has none.
  void add(std::size_t copy_class, Way way, std::size_t bytes, CopyTimes::Duration time) {
    times_.add(copy_class, way, bytes, time);
  }

 private:
  static constexpr std::uint64_t kPeriod = 2048;
  // Trials of each method per period. The first ones are not timed, as the slots' cache lines are
  // still where the previous method left them.
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

}  // namespace kolo::inline v0::shm
