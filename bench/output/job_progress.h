// Progress of a command that runs jobs: a line for each finished job, with the time left. A
// terminal also shows the running job.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace kolo::bench {

// "3:05 left", "1:02:10 left"; empty if it is not known (below 0).
std::string time_left_text(double seconds);

class JobProgress {
 public:
  // `out` is borrowed. `weights`: the expected durations of the jobs, in any unit.
  JobProgress(std::FILE* out, std::vector<double> weights);

  // The next job begins.
  void begin(const std::string& job);
  // The job has ended; `outcome` is its result, in a few words.
  void end(const std::string& job, const std::string& outcome);
  // The next job does not run. It took no time, so it does not count for the time left.
  void skip(const std::string& job, const std::string& why);

  // Below 0 before the first job has ended.
  double seconds_left(double elapsed_s) const;

 private:
  std::string place() const;
  std::string left() const;

  std::FILE* out_;
  std::vector<double> weights_;
  bool is_terminal_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kolo::bench
