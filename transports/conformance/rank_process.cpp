#include "transports/conformance/rank_process.h"

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "transports/conformance/child_process.h"
#include "transports/conformance/scenarios.h"
#include "transports/error.h"

namespace kolo::inline v0::conformance {

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

int play(const std::string& transport, int rank, std::uint16_t port, const std::string& scenario) {
  const Deadline deadline = Clock::now() + kPatience;
  const auto job = connect_tcp_store("127.0.0.1", port, deadline);
  const auto store = prefixed(job, "transport/");
  job->join(rank);
  const TransportRequest request{rank, kScenarioSize, store, deadline, 0, kScenarioSize};
  if (scenario == kFinishEarly) {
    finish_early(transport, request);
    job->leave();
    return 0;
  }
  if (rank == kVictim) {
    scenario_named(scenario).victim(transport, request, *job);
    return 1;  // it should have been killed
  }
  const std::string wrong = survive(scenario_named(scenario), transport, rank, *job, store);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", by_rank(rank, wrong).c_str());
  return 1;
}

}  // namespace

std::vector<std::string> rank_words(std::string_view transport, int rank, std::uint16_t port,
                                    std::string_view scenario) {
  return {std::string(transport), std::to_string(rank), std::to_string(port),
          std::string(scenario)};
}

int be_rank(std::span<const std::string> words) {
  end_with_parent();
  try {
    return play(words[0], std::stoi(words[1]), static_cast<std::uint16_t>(std::stoi(words[2])),
                words[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", by_rank(std::atoi(words[1].c_str()), error.what()).c_str());
    return 1;
  }
}

}  // namespace kolo::inline v0::conformance
