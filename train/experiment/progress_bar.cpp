#include "train/experiment/progress_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "train/loop/seconds.h"

namespace kolo::train {
namespace {

constexpr double kLineSeconds = 20;  // between two lines of a log
constexpr double kEpochSeconds = 1;  // the same at the start of an epoch
constexpr int kBarCells = 24;
constexpr int kNarrowCells = 8;  // on lines shorter than kRoomyWidth
constexpr int kRoomyWidth = 100;

int width_of(std::FILE* out) {
  winsize size{};
  const bool is_known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col - 1 : 79;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// Figures of the training so far, the most important first: a narrow terminal cuts the end.
std::string numbers(const ProgressNote& note, double seconds_left) {
  std::string text;
  if (seconds_left >= 0) text += fmt::format(", {} left", clock_text(seconds_left));
  if (note.iteration > 0) {
    text += fmt::format(", {:.1f} images/s, loss {:.3f}", note.images_per_second, note.loss);
  }
  if (note.test_accuracy >= 0) text += fmt::format(", test {:.1f} %", 100 * note.test_accuracy);
  return text;
}

std::string bar(double fraction, int cells) {
  const int full = static_cast<int>(fraction * cells);
  return std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(cells - full), '.');
}

}  // namespace

double fraction_done(const ProgressNote& note) {
  if (note.iterations == 0) return 0;
  return static_cast<double>(note.iteration) / static_cast<double>(note.iterations);
}

std::string progress_line(const RunPosition& place, const ProgressNote& note, double fraction,
                          double seconds_left, int width) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  const std::string doing = note.activity == "training"
                                ? fmt::format("epoch {}/{}", note.epoch, note.epochs)
                                : note.activity;
  const std::string text =
      fmt::format("] {:3.0f} %  {} ({}/{}) {}{}", 100 * fraction, place.name, place.index + 1,
                  place.runs, doing, numbers(note, seconds_left));
  const std::string line =
      "[" + bar(fraction, width < kRoomyWidth ? kNarrowCells : kBarCells) + text;
  return line.substr(0, static_cast<std::size_t>(std::max(1, width)));
}

std::string progress_words(const RunPosition& place, const ProgressNote& note,
                           double seconds_left) {
  std::string text =
      fmt::format("{} (run {} of {}): {}", place.name, place.index + 1, place.runs, note.activity);
  if (note.iteration > 0) {
    text += fmt::format(", epoch {} of {}, iteration {} of {}", note.epoch, note.epochs,
                        note.iteration, note.iterations);
  }
  return text + numbers(note, seconds_left);
}

ProgressBar::ProgressBar(std::FILE* out, std::vector<double> weights)
    : out_(out), weights_(std::move(weights)), is_terminal_(isatty(fileno(out)) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  const std::lock_guard lock(mutex_);
  erase();
}

void ProgressBar::erase() {
  if (is_drawn_) std::fputs("\r\033[K", out_);
  std::fflush(out_);
  is_drawn_ = false;
}

void ProgressBar::show(const RunPosition& place, const ProgressNote& note) {
  const std::lock_guard lock(mutex_);
  const auto run = static_cast<std::size_t>(place.index);
  done_.resize(static_cast<std::size_t>(place.runs));
  shown_epoch_.resize(done_.size(), -1);
  done_[run] = fraction_done(note);
  weights_.resize(done_.size(), 1);
  const double fraction = fraction_of_all();
  const double left = seconds_left(fraction);
  if (is_terminal_) {
    const std::string line = progress_line(place, note, fraction, left, width_of(out_));
    std::fputs(("\r\033[K" + line).c_str(), out_);
    std::fflush(out_);
    is_drawn_ = true;
    return;
  }
  if (!is_worth_a_line(place, note)) return;
  std::fputs((progress_words(place, note, left) + "\n").c_str(), out_);
  std::fflush(out_);
  last_line_ = Clock::now();
  shown_epoch_[run] = note.epoch;
}

double ProgressBar::fraction_of_all() const {
  const double all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  return std::inner_product(done_.begin(), done_.end(), weights_.begin(), 0.0) / all;
}

double ProgressBar::seconds_left(double fraction) const {
  const double elapsed = seconds_since(start_);
  if (fraction < 0.02 || elapsed < 2) return -1;  // too early for an estimate
  return elapsed / fraction * (1 - fraction);
}

bool ProgressBar::is_worth_a_line(const RunPosition& place, const ProgressNote& note) const {
  const double waited = seconds_since(last_line_);
  const int shown = shown_epoch_[static_cast<std::size_t>(place.index)];
  return shown < 0 || (note.epoch != shown && waited > kEpochSeconds) || waited > kLineSeconds;
}

}  // namespace kolo::train
