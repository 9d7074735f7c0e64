#include "collectives/planner/oversubscription.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/schedule/simulator.h"

namespace kolo::inline v0 {
namespace {

constexpr double kMostBusier = 4;
// More are not simulated. A hundred simulations of 256 ranks took 1.6 s on rank 0, at the start.
constexpr std::size_t kMostRanks = 32;

Step send_to(int peer) {
  Step step;
  step.kind = StepKind::kSend;
  step.to = static_cast<std::int16_t>(peer);
  step.in = {Place::kScratch, 0};
  return step;
}

Step receive_from(int peer) {
  Step step;
  step.kind = StepKind::kReceive;
  step.from = static_cast<std::int16_t>(peer);
  step.chunk = 1;
  step.out = {Place::kScratch, 1};
  return step;
}

// Schedules of all ranks for `round`.
std::vector<Schedule> program_of(const RingRound& round, int size) {
  std::vector<Schedule> program;
  for (int rank = 0; rank < size; ++rank) {
    const int right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    Schedule schedule;
    schedule.rank = rank;
    schedule.size = size;
    schedule.chunks = 2;
    for (int i = 0; i < kRingRounds; ++i) {
      for (const RingStep move : round) {
        const bool is_right = move == RingStep::kSendRight || move == RingStep::kReceiveRight;
        const bool is_said = move == RingStep::kSendRight || move == RingStep::kSendLeft;
        const int peer = is_right ? right : left;
        schedule.steps.push_back(is_said ? send_to(peer) : receive_from(peer));
      }
    }
    program.push_back(std::move(schedule));
  }
  return program;
}

double takes(std::span<const Schedule> program, const Costs& costs, std::span<const int> hosts) {
  SimulationOptions options;
  options.count = 2;
  options.keeps_events = false;
  options.hosts = hosts;
  return simulate(program, costs, options).total_us / kRingRounds;
}

// Solves takes(x) = us for x between `low` and `high` by bisection. takes() increases. Without a
// solution, the nearer end.
template <typename Takes>
double solved(double low, double high, double us, const Takes& takes) {
  constexpr int kHalvings = 10;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (takes(middle) < us ? low : high) = middle;
  }
  return (low + high) / 2;
}

Link busier(Link link, double factor) {
  const double more = (factor - 1) * (link.send_us + link.receive_us);
  link.send_us *= factor;
  link.receive_us *= factor;
  link.next_us *= factor;
  link.latency_us = std::max(0.0, link.latency_us - more);
  return link;
}

}  // namespace

std::vector<int> sampled(std::span<const int> hosts, std::size_t ranks) {
  std::vector<int> sample;
  std::vector<int> numbers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const int host = hosts[rank * hosts.size() / ranks];
    const auto known = std::ranges::find(numbers, host);
    sample.push_back(static_cast<int>(known - numbers.begin()));
    if (known == numbers.end()) numbers.push_back(host);
  }
  return sample;
}

RingTimes simulated_ring_times(const Costs& costs, std::span<const int> hosts) {
  const auto size = static_cast<int>(hosts.size());
  return {takes(program_of(kAlternatingRound, size), costs, hosts),
          takes(program_of(kSendsFirstRound, size), costs, hosts)};
}

Costs fit_shared_core_costs(const Costs& pair_costs, const RingTimes& all_measured,
                            std::span<const int> all_hosts) {
  const std::vector<int> hosts = sampled(all_hosts, std::min(all_hosts.size(), kMostRanks));
  const double part = static_cast<double>(hosts.size()) / static_cast<double>(all_hosts.size());
  const RingTimes measured{part * all_measured.alternating_us, part * all_measured.sends_first_us};
  const auto in_turn = program_of(kAlternatingRound, static_cast<int>(hosts.size()));
  const auto at_once = program_of(kSendsFirstRound, static_cast<int>(hosts.size()));
  const auto with_factor = [&](double factor) {
    Costs costs = pair_costs;
    costs.local = busier(pair_costs.local, factor);
    costs.remote = busier(pair_costs.remote, factor);
    costs.switch_us =
        solved(0, measured.alternating_us, measured.alternating_us, [&](double switch_us) {
          costs.switch_us = switch_us;
          return takes(in_turn, costs, hosts);
        });
    return costs;
  };
  return with_factor(solved(1, kMostBusier, measured.sends_first_us, [&](double factor) {
    return takes(at_once, with_factor(factor), hosts);
  }));
}

}  // namespace kolo::inline v0
