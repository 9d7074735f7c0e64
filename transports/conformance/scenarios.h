// Ranks that are processes, one of which is killed: what the victim is doing at that moment, and
// what the survivors do.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "transports/registry.h"

namespace kolo::conformance {

struct Scenario {
  std::string_view name;
  // Where the victim sets ready(2) when it may be killed, and then goes on for ever.
  void (*victim)(std::string_view transport, const TransportRequest& request, Store& job);
  // Goes on until something is thrown.
  void (*survivor)(std::string_view transport, const TransportRequest& request, Store& job);
};

std::span<const Scenario> scenarios();
const Scenario& scenario_named(std::string_view name);

// The last rank is the victim.
inline constexpr int kScenarioSize = 3;
inline constexpr int kVictim = 2;

// Runs a survivor to its end: empty when it learned in time that the victim is lost, else what went
// wrong.
std::string survive(const Scenario& scenario, std::string_view transport, int rank, Store& job,
                    std::shared_ptr<Store> store);

// Sends a few segments to rank 0, says so in the store, and is done in good order; the other ranks
// only look on.
void finish_early(std::string_view transport, const TransportRequest& request);

}  // namespace kolo::conformance
