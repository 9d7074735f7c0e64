// Quantiles and averages of times, and bandwidths.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::bench {

struct Quantiles {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  double p99 = 0;
};

// The value below which the share `q` (0 to 1) of the values lies, interpolated as NumPy's default.
// NaN without values.
double quantile(std::vector<double> values, double q);

Quantiles quantiles(const std::vector<double>& values);

// The arithmetic mean; NaN without values.
double average(const std::vector<double>& values);

// busbw / algbw as in nccl-tests: how many times the bytes the busiest rank's link carries in one
// direction, with the best algorithm. `servers` are the dedicated servers of a push_pull; 0: every
// rank serves.
double bus_factor(Collective collective, int ranks, int servers);

// Bytes per nanosecond; 0 if nothing is moved or measured.
double gigabytes_per_second(std::size_t bytes, double microseconds);

}  // namespace kolo::bench
