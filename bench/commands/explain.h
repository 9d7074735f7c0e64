// kolo-bench explain: the planner's costs, choices and reasons, beside measured times.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "bench/commands/algorithm_comparison.h"

namespace kolo::bench {

// Costs as lines of text. `hosts` is the number of hosts, `ranks` the number on the fullest host.
std::string describe(const Costs& costs, int hosts, int ranks);

class Explanation : public ComparisonReport {
 public:
  Explanation(const Arguments& arguments, std::ostream& table, JsonLines& json)
      : arguments_(arguments), table_(table), json_(json) {}
  void begin(const Communicator& communicator, const CoreDistance& distance) override;
  void add(const AlgorithmComparison& contest) override;
  void end() override;

 private:
  // Width of the column `by`.
  std::size_t by_width() const;

  const Arguments& arguments_;
  std::ostream& table_;
  JsonLines& json_;
};

}  // namespace kolo::bench
