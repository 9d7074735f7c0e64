#include "bench/measure/cache_line.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/measure/cores.h"
#include "bench/measure/statistics.h"

namespace kolo::bench {
namespace {

constexpr std::uint32_t kTrialRounds = 4;
constexpr std::uint32_t kRounds = 200;
constexpr int kRuns = 12;
// On busy cores rounds take as long as other programs run: then no further runs.
constexpr std::chrono::milliseconds kLongestRuns{10};
constexpr std::uint32_t kOn = 0xfffffffe;  // the first side's decision: another run, or the end
constexpr std::uint32_t kOver = 0xffffffff;
constexpr int kSpins = 20'000;
constexpr double kFarLimitUs = 2;
constexpr double kNearLimitUs = 0.35;  // measured: 0.12 and 0.28 near, 0.49 far
constexpr double kStill = 1.5;         // factor between two probes of cores that have not moved

// If two cores are so busy, the result would be useless anyway.
constexpr std::chrono::seconds kLongestProbe{2};
struct TooLong {};

template <typename Is>
void wait_until(const Line& line, const Is& is_right, const WaitCallback& patience) {
  // No pause: it is longer than the round trip.
  for (int spin = 0; !is_right(line.value.load(std::memory_order_acquire)); ++spin) {
    if (spin <= kSpins) continue;
    std::this_thread::yield();  // the other side's core is busy, or that side has ended
    spin = kSpins;
    if (patience) patience();
  }
}

void wait_for(const Line& line, std::uint32_t value, const WaitCallback& patience) {
  wait_until(
      line, [value](std::uint32_t there) { return there == value; }, patience);
}

// Whether there is another run. Side 0 decides (`is_wanted`), and side 1 learns the decision.
bool goes_on(Line& to_second, Line& to_first, int side, bool is_wanted,
             const WaitCallback& patience) {
  if (side == 0) {
    const std::uint32_t word = is_wanted ? kOn : kOver;
    to_second.value.store(word, std::memory_order_release);
    wait_for(to_first, word, patience);
    to_second.value.store(0, std::memory_order_release);
    wait_for(to_first, 0, patience);
    return is_wanted;
  }
  wait_until(
      to_second, [](std::uint32_t there) { return there == kOn || there == kOver; }, patience);
  const std::uint32_t word = to_second.value.load(std::memory_order_acquire);
  to_first.value.store(word, std::memory_order_release);
  wait_for(to_second, 0, patience);
  to_first.value.store(0, std::memory_order_release);
  return word == kOn;
}

}  // namespace

double ping_pong(Line& to_second, Line& to_first, int side, std::uint32_t rounds,
                 const WaitCallback& patience) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 1; i <= rounds; ++i) {
    if (side == 0) {
      to_second.value.store(i, std::memory_order_release);
      wait_for(to_first, i, patience);
    } else {
      wait_for(to_second, i, patience);
      to_first.value.store(i, std::memory_order_release);
    }
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  if (side == 0) {  // reset to 0; the second side last, as it may still read its line
    to_second.value.store(0, std::memory_order_release);
    wait_for(to_first, 0, patience);
  } else {
    wait_for(to_second, 0, patience);
    to_first.value.store(0, std::memory_order_release);
  }
  return took.count() / rounds;
}

double quickest_ping_pong(Line& to_second, Line& to_first, int side, const WaitCallback& patience) {
  const auto begin = std::chrono::steady_clock::now();
  double best = ping_pong(to_second, to_first, side, kTrialRounds, patience);
  for (int run = 0; run < kRuns; ++run) {
    const bool has_time = std::chrono::steady_clock::now() - begin < kLongestRuns;
    if (!goes_on(to_second, to_first, side, has_time, patience)) break;
    best = std::min(best, ping_pong(to_second, to_first, side, kRounds, patience));
  }
  return best;
}

double cache_line_round_trip() {
  const std::vector<int> cores = available_cores();
  if (cores.size() < 2) return 0;
  Line lines[2];
  double took = 0;
  const auto deadline = std::chrono::steady_clock::now() + kLongestProbe;
  const WaitCallback patience = [deadline] {
    if (std::chrono::steady_clock::now() > deadline) throw TooLong();
  };
  const auto play = [&](int side) {
    try {
      bind_to_core(cores[static_cast<std::size_t>(side)]);
      const double quickest = quickest_ping_pong(lines[0], lines[1], side, patience);
      if (side == 0) took = quickest;
    } catch (const TooLong&) {
      // The other side has stopped too, or never started: the result is unknown.
    }
  };
  {
    const std::jthread second(play, 1);  // gives up if the first thread cannot be started
    const std::jthread first(play, 0);
  }
  return took;
}

bool is_disturbed(double cache_line_us) { return cache_line_us > kFarLimitUs; }

const char* regime(double cache_line_us) {
  if (cache_line_us <= 0) return "unknown";
  if (is_disturbed(cache_line_us)) return "disturbed";
  return cache_line_us < kNearLimitUs ? "near" : "far";
}

void CoreDistance::add(double cache_line_us) {
  if (cache_line_us > 0) probes_us_.push_back(cache_line_us);
}

void CoreDistance::add(const CoreDistance& other) {
  probes_us_.insert(probes_us_.end(), other.probes_us_.begin(), other.probes_us_.end());
  is_disturbed_ = is_disturbed_ || other.is_disturbed_;
}

double CoreDistance::cache_line_us() const {
  return probes_us_.empty() ? 0 : quantile(probes_us_, 0.5);
}

const char* CoreDistance::regime() const {
  if (is_disturbed_) return "disturbed";
  if (probes_us_.empty()) return bench::regime(0);
  const auto [shortest, longest] = std::ranges::minmax(probes_us_);
  if (longest > kFarLimitUs) return bench::regime(longest);
  // Near probes may differ by a factor of two without a move: 0.05 us and 0.10 us were measured in
  // turn.
  const bool is_of_two = std::string_view(bench::regime(shortest)) != bench::regime(longest);
  return is_of_two && longest > kStill * shortest ? "moved" : bench::regime(cache_line_us());
}

}  // namespace kolo::bench
