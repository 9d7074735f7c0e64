#include "collectives/crowd.h"

#include <algorithm>
#include <vector>

#include "collectives/simulator.h"

namespace kolo {
namespace {

constexpr double kMostBusier = 4;

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

// The schedules of both ways.
struct Programs {
  std::vector<Schedule> in_turn;
  std::vector<Schedule> at_once;

  explicit Programs(int size) {
    for (int rank = 0; rank < size; ++rank) {
      const int right = (rank + 1) % size;
      const int left = (rank + size - 1) % size;
      Schedule schedule;
      schedule.rank = rank;
      schedule.size = size;
      schedule.chunks = 2;
      in_turn.push_back(schedule);
      at_once.push_back(schedule);
      for (int round = 0; round < kCrowdRounds; ++round) {
        for (const Step& step :
             {send_to(right), receive_from(left), send_to(left), receive_from(right)}) {
          in_turn.back().steps.push_back(step);
        }
        for (const Step& step :
             {send_to(right), send_to(left), receive_from(left), receive_from(right)}) {
          at_once.back().steps.push_back(step);
        }
      }
    }
  }
};

double takes(std::span<const Schedule> program, const Costs& costs, std::span<const int> hosts) {
  SimulationOptions options;
  options.count = 2;
  options.keeps_events = false;
  options.hosts = hosts;
  return simulate(program, costs, options).total_us / kCrowdRounds;
}

// Where between the two `takes`, which grows, gives `us`; the nearer end, where it nowhere does.
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
  link.latency_us = std::max(0.0, link.latency_us - more);
  return link;
}

}  // namespace

Crowd simulated_crowd(const Costs& costs, std::span<const int> hosts) {
  const Programs programs(static_cast<int>(hosts.size()));
  return {takes(programs.in_turn, costs, hosts), takes(programs.at_once, costs, hosts)};
}

Costs fitted(const Costs& of_a_pair, const Crowd& measured, std::span<const int> hosts) {
  const Programs programs(static_cast<int>(hosts.size()));
  const auto with_factor = [&](double factor) {
    Costs costs = of_a_pair;
    costs.local = busier(of_a_pair.local, factor);
    costs.remote = busier(of_a_pair.remote, factor);
    costs.switch_us = solved(0, measured.in_turn_us, measured.in_turn_us, [&](double switch_us) {
      costs.switch_us = switch_us;
      return takes(programs.in_turn, costs, hosts);
    });
    return costs;
  };
  return with_factor(solved(1, kMostBusier, measured.at_once_us, [&](double factor) {
    return takes(programs.at_once, with_factor(factor), hosts);
  }));
}

}  // namespace kolo
