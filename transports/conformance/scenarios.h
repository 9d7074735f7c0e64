// Scenarios with ranks as processes, one of which is killed: the victim's activity at that moment,
// and the survivors' activity.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transports/registry.h"

namespace kolo::inline v0::conformance {

struct Scenario {
  std::string_view name;
  // Sets the key "ready" in `job` when it may be killed, then continues for ever.
  void (*victim)(std::string_view transport, const TransportRequest& request, Store& job);
  // Continues until an error is thrown.
  void (*survivor)(std::string_view transport, const TransportRequest& request, Store& job);
};

std::span<const Scenario> scenarios();
const Scenario& scenario_named(std::string_view name);

// The last rank is the victim.
inline constexpr int kScenarioSize = 3;
inline constexpr int kVictim = 2;

// Runs a survivor to its end. Empty if it learned in time that the victim is lost, else the
// failure.
std::string survive(const Scenario& scenario, std::string_view transport, int rank, Store& job,
                    std::shared_ptr<Store> store);

// The victim's rank sends a few segments to rank 0 and ends in order; the other ranks end at once.
void finish_early(std::string_view transport, const TransportRequest& request);

}  // namespace kolo::inline v0::conformance
