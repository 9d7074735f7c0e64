// A cache line's round trip between two cores: how far apart they are.
//
// On virtual machines the host may move cores; the same program then runs several times slower. So
// every point is measured together with this, and only points of like distance are compared.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace kolo::bench {

struct alignas(64) Line {
  std::atomic<std::uint32_t> value{0};
};

// Called now and then by a side that has waited for long; throws to leave the game. Empty: it waits
// for ever.
using WaitCallback = std::function<void()>;

// One side of `rounds` round trips between two threads; both call it at once, with the same lines,
// as side 0 and 1. Both lines are 0 before and afterwards. The time of one round trip in
// microseconds.
double ping_pong(Line& to_second, Line& to_first, int side, std::uint32_t rounds,
                 const WaitCallback& patience = {});

// The quickest of several short games: one that was interrupted says nothing about distance. Where
// others keep the cores so busy that a few rounds take milliseconds there is no more than those.
double quickest_ping_pong(Line& to_second, Line& to_first, int side,
                          const WaitCallback& patience = {});

// The same by two threads of its own, bound to the first two cores of this process; 0 where there
// is only one, or where others keep them so busy that it takes more than 2 s. std::system_error
// where no thread can be started.
double cache_line_round_trip();

// "near": the two cores share a cache; "far": a line has to travel; "disturbed": they did not play
// at the same time, because another process took a core; "unknown" for 0.
const char* regime(double cache_line_us);
bool is_disturbed(double cache_line_us);

// How far apart the cores were in the course of a measurement: a probe before it, one after it, and
// as many between. What is measured while they move belongs to no regime.
class CoreDistance {
 public:
  // 0, where there was nothing to measure, counts as no probe.
  void add(double cache_line_us);
  void add(const CoreDistance& other);
  // What was measured meanwhile says that others had the cores.
  void disturb() { is_disturbed_ = true; }

  const std::vector<double>& probes_us() const { return probes_us_; }
  // Their median; 0 without probes.
  double cache_line_us() const;
  // The latest; 0 without probes.
  double last_us() const { return probes_us_.empty() ? 0 : probes_us_.back(); }
  // "disturbed" where one of them was, or disturb() said so; "moved" where the longest is more
  // than 1.5 times the shortest; else that of their median.
  const char* regime() const;

 private:
  std::vector<double> probes_us_;
  bool is_disturbed_ = false;
};

}  // namespace kolo::bench
