// Round trip of a cache line between two cores: a measure of their distance.
//
// The host of a virtual machine may move cores; the same program then runs several times slower. So
// every row is measured together with this distance, and only rows of the same distance are
// compared.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace kolo::bench {

struct alignas(64) Line {
  std::atomic<std::uint32_t> value{0};
};

// Called repeatedly by a side that has waited for long; may throw to stop. Empty: it waits forever.
using WaitCallback = std::function<void()>;

// Runs one side of `rounds` round trips between two threads. Both threads call it at the same time
// with the same lines, as side 0 and 1. Both lines must be 0 before, and are 0 afterwards. Returns
// the time of one round trip in microseconds.
double ping_pong(Line& to_second, Line& to_first, int side, std::uint32_t rounds,
                 const WaitCallback& patience = {});

// The fastest of several short runs: an interrupted run says nothing about distance. On busy cores,
// where a few rounds take milliseconds, it stops early.
double quickest_ping_pong(Line& to_second, Line& to_first, int side,
                          const WaitCallback& patience = {});

// The same with two threads of its own, bound to the first two cores of this process. 0 if there is
// only one core, or if busy cores make it take more than 2 s. std::system_error if no thread can be
// started.
double cache_line_round_trip();

// "near": the two cores share a cache. "far": the line has to travel. "disturbed": another process
// took a core, so both sides did not run at the same time. "unknown" for 0.
const char* regime(double cache_line_us);
bool is_disturbed(double cache_line_us);

// Distance of the cores during a measurement: probes before, during and after it.
class CoreDistance {
 public:
  // 0 (nothing was measured) is not a probe.
  void add(double cache_line_us);
  void add(const CoreDistance& other);
  // Marks the measurement as disturbed: its times show that other programs had the cores.
  void disturb() { is_disturbed_ = true; }

  const std::vector<double>& probes_us() const { return probes_us_; }
  // The median of the probes; 0 without probes.
  double cache_line_us() const;
  // The latest probe; 0 without probes.
  double last_us() const { return probes_us_.empty() ? 0 : probes_us_.back(); }
  // "disturbed" if one of the probes was, or disturb() was called. "moved" if the probes are of two
  // regimes and the longest is more than 1.5 times the shortest. Otherwise the regime of the
  // median.
  const char* regime() const;

 private:
  std::vector<double> probes_us_;
  bool is_disturbed_ = false;
};

}  // namespace kolo::bench
