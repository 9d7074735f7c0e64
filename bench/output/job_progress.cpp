#include "bench/output/job_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace kolo::bench {

std::string time_left_text(double seconds) {
  if (seconds < 0) return "";
  const auto whole = static_cast<long>(std::lround(seconds));
  const long minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02} left", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02} left", minutes / 60, minutes % 60, whole % 60);
}

JobProgress::JobProgress(std::FILE* out, std::vector<double> weights)
    : out_(out), weights_(std::move(weights)), is_terminal_(isatty(fileno(out)) == 1) {}

void JobProgress::begin(const std::string& job) {
  if (!is_terminal_) return;
  std::fputs(fmt::format("{} {} ...{}", place(), job, left()).c_str(), out_);
  std::fflush(out_);
}

void JobProgress::end(const std::string& job, const std::string& outcome) {
  const std::string before = place();
  done_ = std::min(done_ + 1, weights_.size());
  std::fputs(
      fmt::format("{}{} {}: {}{}\n", is_terminal_ ? "\r\033[K" : "", before, job, outcome, left())
          .c_str(),
      out_);
  std::fflush(out_);
}

void JobProgress::skip(const std::string& job, const std::string& why) {
  if (done_ < weights_.size()) weights_[done_] = 0;
  end(job, "skipped: " + why);
}

double JobProgress::seconds_left(double elapsed_s) const {
  const auto middle = weights_.begin() + static_cast<std::ptrdiff_t>(done_);
  const double done = std::accumulate(weights_.begin(), middle, 0.0);
  const double to_come = std::accumulate(middle, weights_.end(), 0.0);
  return done > 0 ? elapsed_s / done * to_come : -1;
}

std::string JobProgress::place() const {
  return fmt::format("[{}/{}]", std::min(done_ + 1, weights_.size()), weights_.size());
}

std::string JobProgress::left() const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const std::string text = time_left_text(seconds_left(elapsed.count()));
  return text.empty() ? "" : "; " + text;
}

}  // namespace kolo::bench
