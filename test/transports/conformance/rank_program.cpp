// One rank as a process: transports_rank TRANSPORT RANK HOST PORT SCENARIO. The victim of a
// scenario, a survivor, or, with the scenario "finish early", a rank that ends in good order.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "test/transports/conformance/scenarios.h"

using namespace kolo;
using namespace kolo::test;

int main(int count, char** arguments) {
  if (count != 6) return 2;
  const std::string transport = arguments[1];
  const int rank = std::atoi(arguments[2]);
  const std::string scenario = arguments[5];
  try {
    const Deadline deadline = Clock::now() + std::chrono::seconds(60);
    const auto job = connect_tcp_store(
        arguments[3], static_cast<std::uint16_t>(std::atoi(arguments[4])), deadline);
    const auto store = prefixed(job, "transport/");
    job->join(rank);
    const TransportRequest request{rank, kScenarioSize, store, deadline, 0, kScenarioSize};
    if (scenario == "finish early") {
      finish_early(transport, request);
      job->leave();
      return 0;
    }
    if (rank == kVictim) {
      scenario_named(scenario).victim(transport, request, *job);
      return 3;  // it should have been killed
    }
    const std::string wrong = survive(scenario_named(scenario), transport, rank, *job, store);
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "rank %d: %s\n", rank, wrong.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  return 1;
}
