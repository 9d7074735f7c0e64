#include "train/loop/straggler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "train/loop/seconds.h"

namespace kolo::train {
namespace {

constexpr double kLeastSleep = 1e-3;  // the kernel's timers make shorter sleeps much longer
constexpr double kLargestFactor = 1000;

double sleep_for(double seconds) {
  const Clock::time_point start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return seconds_since(start);
}

template <typename Number>
bool read(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  return code == std::errc{} && stop == end;
}

}  // namespace

std::string Straggle::text() const {
  return is_set() ? fmt::format("rank={},factor={:g}", rank, factor) : "none";
}

Straggle parse_straggle(std::string_view text) {
  Straggle straggle;
  double factor = 0;
  std::string_view rest = text;
  bool is_valid = !text.ends_with(',');
  while (is_valid && !rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (word.starts_with("rank=") && straggle.rank < 0) {
      is_valid = read(word.substr(5), straggle.rank) && straggle.rank >= 0;
    } else if (word.starts_with("factor=") && factor == 0) {
      is_valid = read(word.substr(7), factor) && factor >= 1 && factor <= kLargestFactor;
    } else {
      is_valid = false;
    }
  }
  if (!is_valid || straggle.rank < 0 || factor == 0) {
    throw std::invalid_argument(
        fmt::format("expected rank=R,factor=F, with a worker R and F from 1 to {:g}, as "
                    "rank=1,factor=1.5; got '{}'",
                    kLargestFactor, text));
  }
  straggle.factor = factor;
  return straggle;
}

Straggler::Straggler(double factor) : Straggler(factor, sleep_for) {}

Straggler::Straggler(double factor, Sleep sleep) : factor_(factor), sleep_(std::move(sleep)) {}

void Straggler::computed(double seconds) {
  owed_ += (factor_ - 1) * seconds;
  if (owed_ >= kLeastSleep) owed_ -= sleep_(owed_);
}

void Straggler::settle() {
  if (owed_ > 0) owed_ -= sleep_(owed_);
}

}  // namespace kolo::train
