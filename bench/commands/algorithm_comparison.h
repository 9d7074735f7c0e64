// A contest: kolo's algorithms for one collective at one size, measured in turn, beside what the
// planner says of them. What explain and tune are made of.
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
  // How much longer the choice takes than the fastest: 0.1 is a tenth longer.
  double distance() const;
  // How far apart the fastest one's own passes are: the middle half of their medians, over the
  // median of all. What is nearer than that nobody can tell apart here.
  double spread() const;
  // "the cheapest", "by the table", ...
  std::string reason() const;
};

// A choice is good where it takes at most so much longer than the fastest.
inline constexpr double kNear = 0.1;

// JSON lines, one for each contestant: those of any row, and then predicted_us, is_chosen, reason
// and is_fastest.
std::vector<std::string> json_lines(const AlgorithmComparison& contest);

// What is done with a contest, at rank 0.
class ComparisonReport {
 public:
  ComparisonReport() = default;
  ComparisonReport(const ComparisonReport&) = delete;
  ComparisonReport& operator=(const ComparisonReport&) = delete;
  virtual ~ComparisonReport() = default;
  // `distance`: of the cores, before and after the communicator measured its costs.
  virtual void begin(const Communicator& communicator, const CoreDistance& distance) = 0;
  virtual void add(const AlgorithmComparison& contest) = 0;
  virtual void end() = 0;
};

// One rank's part in all contests that the arguments ask for; returns how many elements were wrong.
// `distance` is of the cores before the communicator was made; `report` is null but at rank 0.
std::uint64_t compare_algorithms(std::shared_ptr<Communicator> communicator, RankGroup& group,
                                 CoreDistance distance, const Arguments& arguments,
                                 ComparisonReport* report);

}  // namespace kolo::bench
