#include "bench/limits/thread_team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "bench/measure/cores.h"

namespace kolo::bench {
namespace {

constexpr int kTrialRounds = 3;
constexpr int kFewestRounds = 3;
constexpr double kLongest = 3;  // times the requested time: other programs have the cores
constexpr int kSpins = 20'000;  // then yield: there may be fewer cores than threads

class SpinBarrier {
 public:
  explicit SpinBarrier(int size) : size_(size) {}

  void wait() {
    const int phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    for (int spin = 0; phase_.load(std::memory_order_acquire) == phase; ++spin) {
      if (spin > kSpins) std::this_thread::yield();
    }
  }

 private:
  int size_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> phase_{0};
};

// Threads wait at the gate until all have started, so no thread waits for one that could not start.
enum Gate : int { kClosed, kOpen, kGoHome };

void start_together(int threads, std::atomic<int>& gate, const std::function<void(int)>& run) {
  std::vector<std::jthread> team;
  const auto open = [&](Gate how) {
    gate.store(how);
    gate.notify_all();
  };
  try {
    for (int thread = 0; thread < threads; ++thread) team.emplace_back(run, thread);
  } catch (...) {
    open(kGoHome);
    throw;  // joins the threads
  }
  open(kOpen);
}

using Microseconds = std::chrono::duration<double, std::micro>;

// Times of every round, in microseconds.
struct Times {
  std::vector<double> work;   // of the slowest thread
  std::vector<double> whole;  // including preparation
};

// Runs up to `rounds` rounds; stops after `seconds`, but not before kFewestRounds.
Times play(int threads, int rounds, double seconds, const Round& round) {
  SpinBarrier barrier(threads);
  const std::vector<int> cores = available_cores();
  std::vector<Times> times(static_cast<std::size_t>(threads));
  std::mutex mutex;
  std::exception_ptr first;
  std::atomic<bool> is_over{false};
  const auto beginning = std::chrono::steady_clock::now();
  std::atomic<int> gate{kClosed};
  const auto run = [&](int thread) {
    gate.wait(kClosed);
    if (gate.load() == kGoHome) return;
    bind_to_core(cores[static_cast<std::size_t>(thread) % cores.size()]);
    bool has_failed = false;
    for (int i = 0; i <= rounds; ++i) {
      const auto start = std::chrono::steady_clock::now();
      Microseconds took{0};
      try {
        if (!has_failed && round.prepare) round.prepare(thread);
        barrier.wait();
        const auto begin = std::chrono::steady_clock::now();
        if (!has_failed) round.work(thread);
        took = std::chrono::steady_clock::now() - begin;
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
        has_failed = true;
      }
      if (thread == 0 && i >= kFewestRounds) {
        const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - beginning;
        is_over.store(so_far.count() > seconds, std::memory_order_relaxed);
      }
      barrier.wait();
      const bool is_last = is_over.load(std::memory_order_relaxed);
      if (i == 0) continue;
      Times& mine = times[static_cast<std::size_t>(thread)];
      mine.work.push_back(took.count());
      mine.whole.push_back(Microseconds(std::chrono::steady_clock::now() - start).count());
      if (is_last) break;
    }
  };
  start_together(threads, gate, run);
  if (first) std::rethrow_exception(first);
  Times longest = times[0];
  for (const Times& row : times) {
    for (std::size_t i = 0; i < longest.work.size(); ++i)
      longest.work[i] = std::max(longest.work[i], row.work[i]);
  }
  return longest;
}

}  // namespace

std::vector<double> time_together(int threads, int rounds, const Round& round) {
  return play(threads, rounds, std::numeric_limits<double>::infinity(), round).work;
}

int rounds_for(double seconds, double us) {
  return static_cast<int>(std::clamp(seconds * 1e6 / std::max(us, 0.001), 3.0, 1000.0));
}

std::vector<double> time_for(int threads, double seconds, const Round& round) {
  const double longest = kLongest * seconds;
  const double once = std::ranges::min(play(threads, kTrialRounds, longest, round).whole);
  return play(threads, rounds_for(seconds, once), longest, round).work;
}

}  // namespace kolo::bench
