// kolo-bench explain: what the planner knows, what it chooses and why, beside measured times.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "bench/commands/algorithm_comparison.h"

namespace kolo::bench {

// Costs as lines for people. `hosts`: how many; `ranks`: of the host that has most.
std::string describe(const Costs& costs, int hosts, int ranks);

class Explanation : public ComparisonReport {
 public:
  Explanation(const Arguments& arguments, std::ostream& table, JsonLines& json)
      : arguments_(arguments), table_(table), json_(json) {}
  void begin(const Communicator& communicator, const CoreDistance& distance) override;
  void add(const AlgorithmComparison& contest) override;
  void end() override;

 private:
  // Of the column `by`.
  std::size_t by_width() const;

  const Arguments& arguments_;
  std::ostream& table_;
  JsonLines& json_;
};

}  // namespace kolo::bench
