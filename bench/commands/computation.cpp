#include "bench/commands/computation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "transports/transport.h"

namespace kolo::bench {
namespace {

constexpr std::uint32_t kFactor = 1664525;
constexpr std::uint32_t kSummand = 1013904223;

constexpr std::uint64_t kTrialRounds = 256;
constexpr int kTrials = 9;

}  // namespace

Computation::Computation() {
  for (std::size_t i = 0; i < kElements; ++i) values_[i] = static_cast<std::uint32_t>(i);
  rounds_in_slice_ = rounds_in(kSliceUs);
}

void Computation::step() {
  for (std::uint32_t& value : values_) value = value * kFactor + kSummand;
}

void Computation::run(std::uint64_t rounds, const std::function<void()>& between) {
  const std::uint32_t first = iterate(values_.front(), rounds);
  const std::uint32_t last = iterate(values_.back(), rounds);
  for (std::uint64_t done = 0; done < rounds;) {
    const std::uint64_t end = std::min(rounds, done + rounds_in_slice_);
    for (; done < end; ++done) step();
    if (between) between();
  }
  if (values_.front() != first || values_.back() != last)
    throw std::runtime_error("the computation beside the operation came to a wrong result");
}

// The fastest of several trials, since interrupted ones are too long.
double Computation::measure_round_us() {
  double quickest = std::numeric_limits<double>::max();
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto begin = Clock::now();
    for (std::uint64_t i = 0; i < kTrialRounds; ++i) step();
    const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
    quickest = std::min(quickest, time.count());
  }
  return quickest / kTrialRounds;
}

std::uint64_t Computation::rounds_in(double us) {
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(us / measure_round_us()));
}

// Squares the map x -> factor x + summand as often as `rounds` has bits.
std::uint32_t Computation::iterate(std::uint32_t value, std::uint64_t rounds) {
  std::uint32_t factor = kFactor;
  std::uint32_t summand = kSummand;
  for (; rounds != 0; rounds >>= 1) {
    if ((rounds & 1) != 0) value = value * factor + summand;
    summand = summand * factor + summand;
    factor *= factor;
  }
  return value;
}

}  // namespace kolo::bench
