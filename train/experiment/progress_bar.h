// Progress display of a comparison: a bar on a terminal, otherwise a line from time to time.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "train/loop/observer.h"
#include "transports/transport.h"

namespace kolo::train {

// The run that a note belongs to: `index` (0, 1, ...) of `runs`.
struct RunPosition {
  std::string name;  // the arm, and the seed if there are several
  int index = 0;
  int runs = 1;
};

// The fraction of a run that is done.
double fraction_done(const ProgressNote& note);

// One line without a line break, at most `width` characters. `fraction`: of all runs.
// `seconds_left` below 0: unknown.
std::string progress_line(const RunPosition& place, const ProgressNote& note, double fraction,
                          double seconds_left, int width);

// The same in words, for logs.
std::string progress_words(const RunPosition& place, const ProgressNote& note, double seconds_left);

// Any thread may call it.
class ProgressBar {
 public:
  // `out` is borrowed. `weights`: the expected durations of the runs, in any unit; empty: equal.
  explicit ProgressBar(std::FILE* out, std::vector<double> weights = {});
  // Erases the line of the bar.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const RunPosition& place, const ProgressNote& note);
  // Erases the bar, so that other text can be written.
  void clear();

 private:
  void erase();
  double fraction_of_all() const;
  double seconds_left(double fraction) const;
  bool is_worth_a_line(const RunPosition& place, const ProgressNote& note) const;

  std::mutex mutex_;
  std::FILE* out_;
  std::vector<double> weights_;
  bool is_terminal_;
  bool is_drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_line_ = start_;
  std::vector<double> done_;      // the fraction of each run
  std::vector<int> shown_epoch_;  // of each run; below 0: it was not shown yet
};

}  // namespace kolo::train
