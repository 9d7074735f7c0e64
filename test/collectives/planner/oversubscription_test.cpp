// Costs of oversubscription (ranks that share cores), fitted to times that were simulated with
// known costs.
#include "collectives/planner/oversubscription.h"

#include <algorithm>
#include <vector>

#include "test/support/catch.h"

namespace kolo::test {
namespace {

Costs pair_costs() {
  Costs costs;
  costs.local = {2.0, 1.5, 1.5, 1e-4, 1e-4};
  costs.remote = {20.0, 1.5, 1.5, 1e-4, 1e-4};
  costs.overhead_us = 0.02;
  costs.cores = 1;
  return costs;
}

}  // namespace

TEST_CASE("the fit recovers the costs of oversubscription from simulated times") {
  const int size = GENERATE(2, 3, 4, 8, 16, 100);
  const double factor = GENERATE(1.0, 1.5, 2.5);
  const double switch_us = GENERATE(0.5, 4.0);
  INFO(size << " ranks, messages " << factor << " times as long, " << switch_us << " us a change");
  const std::vector<int> hosts(static_cast<std::size_t>(size), 0);
  Costs costs = pair_costs();
  const double way = costs.local.latency_us + costs.local.send_us + costs.local.receive_us;
  costs.local.send_us *= factor;
  costs.local.receive_us *= factor;
  costs.local.latency_us = std::max(0.0, way - costs.local.send_us - costs.local.receive_us);
  costs.switch_us = switch_us;
  const RingTimes measured = simulated_ring_times(costs, hosts);
  const Costs found = fit_shared_core_costs(pair_costs(), measured, hosts);
  const RingTimes again = simulated_ring_times(found, hosts);
  CHECK(again.alternating_us == Approx(measured.alternating_us).epsilon(0.2));
  CHECK(again.sends_first_us == Approx(measured.sends_first_us).epsilon(0.2));
}

TEST_CASE("the fit gives valid costs for times that no model explains") {
  const std::vector<int> hosts(4, 0);
  for (const RingTimes measured :
       {RingTimes{0, 0}, RingTimes{1e-3, 1e6}, RingTimes{1e6, 1e-3}, RingTimes{1e6, 1e6}}) {
    const Costs found = fit_shared_core_costs(pair_costs(), measured, hosts);
    CHECK(found.local.send_us >= pair_costs().local.send_us);
    CHECK(found.local.send_us <= 4 * pair_costs().local.send_us);
    CHECK(found.local.latency_us >= 0);
    CHECK(found.switch_us >= 0);
    CHECK(found.switch_us <= measured.alternating_us);
  }
}

}  // namespace kolo::test
