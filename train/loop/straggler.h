// Straggler: a worker that computes slower than the others, as a slower machine would.
//
// While a worker computes forward and backward, it sleeps in proportion to the time just measured:
// after forward, and between the gradients of backward. So its gradients become final later, and
// exchanges overlap with its backward as on a slow machine. It sleeps instead of computing, so that
// it takes no core from other ranks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "train/loop/seconds.h"

namespace kolo::train {

// The worker `rank` takes `factor` times as long as it computes.
struct Straggle {
  int rank = -1;  // below 0: none
  double factor = 1;

  bool is_set() const { return rank >= 0; }
  std::string text() const;  // as parsed; "none" if none is set
};

// Parses "rank=1,factor=1.5". Throws std::invalid_argument with what is expected.
Straggle parse_straggle(std::string_view text);

class Straggler {
 public:
  // Sleeps for about so many seconds, and returns how many they were. Tests replace it.
  using Sleep = std::function<double(double seconds)>;
  explicit Straggler(double factor);
  Straggler(double factor, Sleep sleep);

  // Reports `seconds` of computing that have just ended. They add (factor - 1) times as much sleep.
  // Sleeps once a millisecond has added up.
  void computed(double seconds);
  // Sleeps for the rest.
  void settle();

 private:
  double factor_;
  Sleep sleep_;
  double owed_ = 0;  // seconds to sleep; below 0: slept too long
};

// Clock of a worker's computing, which runs from resume() to pause(). A straggler sleeps in
// proportion to it, but not to communication.
class ComputeClock {
 public:
  // `factor`: nullopt: not a straggler.
  explicit ComputeClock(std::optional<double> factor) {
    if (factor) straggler_.emplace(*factor);
  }

  void resume() { began_ = Clock::now(); }
  // `other`: seconds since resume() that were not computing.
  void pause(double other = 0) {
    if (straggler_) straggler_->computed(seconds_since(began_) - other);
  }
  // pause(), and a straggler sleeps for the rest.
  void settle(double other = 0) {
    if (!straggler_) return;
    pause(other);
    straggler_->settle();
  }

 private:
  std::optional<Straggler> straggler_;
  Clock::time_point began_;
};

}  // namespace kolo::train
