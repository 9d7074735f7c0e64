// Comparison of algorithms: all of kolo's algorithms for one collective at one size, measured in
// turn, with the planner's predictions. Used by explain and tune.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/library.h"
#include "bench/measure/measure.h"
#include "bench/measure/rank_group.h"
#include "bench/output/report.h"

namespace kolo::bench {

struct ComparedAlgorithm {
  Row row;
  Prediction said;
};

struct AlgorithmComparison {
  std::vector<ComparedAlgorithm> contestants;  // at least one, in the planner's order

  const ComparedAlgorithm& fastest() const;
  const ComparedAlgorithm& chosen() const;
  // Extra time of the chosen algorithm over the fastest: 0.1 is a tenth longer.
  double distance() const;
  // Spread of the fastest algorithm's passes: the middle half of their medians, over the median of
  // all. Smaller differences between algorithms are not significant here.
  double spread() const;
  // Why the planner chose: "the cheapest price", "the table says so", ...
  std::string reason() const;
};

// A choice is good if it takes at most this much longer than the fastest.
inline constexpr double kNear = 0.1;

// JSON lines, one per algorithm: the fields of any row, then predicted_us, is_chosen, reason and
// is_fastest.
std::vector<std::string> json_lines(const AlgorithmComparison& contest);

// Output of comparisons, at rank 0.
class ComparisonReport {
 public:
  ComparisonReport() = default;
  ComparisonReport(const ComparisonReport&) = delete;
  ComparisonReport& operator=(const ComparisonReport&) = delete;
  virtual ~ComparisonReport() = default;
  // `distance` has the probes before and after the communicator measured its costs.
  virtual void begin(const Communicator& communicator, const CoreDistance& distance) = 0;
  virtual void add(const AlgorithmComparison& contest) = 0;
  virtual void end() = 0;
};

// Runs one rank's part of all comparisons that the arguments ask for; returns the number of wrong
// elements. `distance` has a probe from before the communicator was made. `report` is null except
// at rank 0.
std::uint64_t compare_algorithms(std::shared_ptr<Communicator> communicator, RankGroup& group,
                                 CoreDistance distance, const Arguments& arguments,
                                 ComparisonReport* report);

}  // namespace kolo::bench
