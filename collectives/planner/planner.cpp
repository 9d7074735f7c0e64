#include "collectives/planner/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/planner/oversubscription.h"
#include "collectives/schedule/simulator.h"

namespace kolo::inline v0 {
namespace {

// Most ranks that are simulated. Beyond, prices are extrapolated from those of 1, 4 and 16 ranks.
// With steps of 2, algorithms with rounds of four would grow in misleading steps.
constexpr std::size_t kMostRanks = 16;
constexpr std::size_t kMostTurns = 4;
constexpr std::size_t kElementBytes = sizeof(float);

// Limits of the growth, per doubling of the ranks, of the time that a doubling adds. It is constant
// for a tree's rounds, doubles in a ring, and grows faster if ranks share cores.
constexpr double kLeastGrowth = 0.5;
constexpr double kMostGrowth = 4;
constexpr double kMostGrowthOfBytes = 2;
constexpr std::size_t kSizes = 3;  // numbers of ranks that are simulated
constexpr std::size_t kApart = 4;  // factor from each to the next

constexpr double kDoubtPerHop = 0.02;  // if ranks share cores
constexpr std::size_t kRankOrders = 3;

std::size_t ceil_divide(std::size_t of, std::size_t by) { return (of + by - 1) / by; }

bool is_candidate(const Algorithm& algorithm, Collective collective, RankOrder order) {
  return algorithm.collective == collective &&
         (order != RankOrder::kOperands || algorithm.is_in_order) &&
         (order != RankOrder::kFold || algorithm.is_rank_ordered);
}

std::vector<std::uint8_t> candidates(Collective collective, RankOrder order) {
  std::vector<std::uint8_t> rows;
  for (std::size_t row = 0; row < algorithms().size(); ++row) {
    if (is_candidate(algorithms()[row], collective, order)) {
      rows.push_back(static_cast<std::uint8_t>(row));
    }
  }
  return rows;
}

// Collectives with more parameters than rank and size are not simulated; they have one candidate.
bool has_price(Collective collective) {
  return !has_servers(collective) && collective != Collective::kMessage;
}

// Extrapolates by `doublings`, from three values that are two doublings apart.
double extrapolated(const std::array<double, kSizes>& values, double doublings,
                    double most_growth) {
  double value = values[2];
  double added = values[2] - values[1];
  const double before = values[1] - values[0];
  const double growth = before > 0 && added > 0
                            ? std::clamp(std::sqrt(added / before), kLeastGrowth, most_growth)
                            : 1;
  added *= growth / (1 + growth);  // the part of the second doubling
  for (; doublings > 0; --doublings) {
    added *= growth;
    value += added * std::min(doublings, 1.0);
  }
  return std::max(value, 0.0);
}

}  // namespace

Planner::Planner(PlannerInputs situation, const Costs& costs, TuningTable table)
    : inputs_(std::move(situation)), costs_(costs), table_(std::move(table)) {
  Choices undecided;
  undecided.row.fill(kUndecided);
  choices_.assign(kRankOrders * (static_cast<std::size_t>(Collective::kMessage) + 1), undecided);
  inputs_.hosts.resize(static_cast<std::size_t>(inputs_.size));
  has_points_ = std::ranges::any_of(table_.points(), [this](const TuningPoint& point) {
    return point.ranks == inputs_.size && point.transport == inputs_.transport;
  });
}

std::uint8_t Planner::choose(Collective collective, std::size_t bytes, RankOrder order) {
  const std::size_t table =
      kRankOrders * static_cast<std::size_t>(collective) + static_cast<std::size_t>(order);
  if (table >= choices_.size()) {
    throw std::invalid_argument(
        fmt::format("{} is not a collective", static_cast<int>(collective)));
  }
  Choices& choices = choices_[table];
  if (has_points_) {  // a point may lie between two powers of two
    if (choices.measured_row == kUndecided || choices.measured_bytes != bytes) {
      choices.measured_bytes = bytes;
      choices.measured_row = measured(collective, bytes, order).value_or(kUndecided);
    }
    if (choices.measured_row != kUndecided) return choices.measured_row;
  }
  std::uint8_t& row = choices.row[static_cast<std::size_t>(std::bit_width(bytes))];
  if (row == kUndecided) row = decide(collective, std::bit_floor(bytes), order);
  return row;
}

std::uint8_t Planner::decide(Collective collective, std::size_t bytes, RankOrder order) const {
  std::vector<std::uint8_t> rows = candidates(collective, order);
  const auto& hosts = inputs_.hosts;
  if (std::ranges::adjacent_find(hosts, std::ranges::not_equal_to{}) == hosts.end()) {
    std::erase_if(rows, [](std::uint8_t row) { return algorithms()[row].is_for_hosts; });
  }
  if (rows.empty()) {
    throw std::invalid_argument(
        fmt::format("{}: no algorithm combines in the order of ranks", to_string(collective)));
  }
  if (rows.size() == 1 || inputs_.size == 1 || !has_price(collective)) return rows.front();
  return *std::ranges::min_element(
      rows, {}, [&](std::uint8_t row) { return price(row, bytes) * (1 + doubt_of(row, bytes)); });
}

// Penalty for waits if ranks share cores: the awaited rank may have no core, which the simulator's
// round-robin scheduling underestimates. Rings of 4 ranks on 2 cores, with the same price as
// others, took up to twice as long. So every message that waits for another adds a little. A larger
// penalty would be wrong for rings of 8 ranks, which use caches well.
double Planner::doubt_of(std::uint8_t row, std::size_t bytes) const {
  if (costs_.cores == 0 || inputs_.is_on_streams) return 0;
  const auto size = static_cast<std::size_t>(inputs_.size);
  const std::vector<int> hosts = sampled(inputs_.hosts, std::min(size, kMostRanks));
  const std::vector<Schedule> program = program_of(row, bytes, hosts);
  Costs hops;
  hops.local = hops.remote = Link{.latency_us = 1};
  hops.overhead_us = hops.copy_us_per_byte = hops.reduce_us_per_byte = 0;
  SimulationOptions options;
  options.count = static_cast<std::size_t>(program[0].chunks / program[0].spans);
  options.credit = inputs_.credit;
  options.keeps_events = false;
  options.hosts = hosts;
  return kDoubtPerHop * simulate(program, hops, options).total_us;
}

// The table's algorithm, if it is a candidate.
std::optional<std::uint8_t> Planner::measured(Collective collective, std::size_t bytes,
                                              RankOrder order) const {
  const auto name = table_.find(collective, inputs_.size, inputs_.transport, bytes);
  if (!name) return std::nullopt;
  const std::uint8_t row = find_algorithm(collective, *name);
  return is_candidate(algorithms()[row], collective, order) ? std::optional(row) : std::nullopt;
}

double Planner::price(std::uint8_t row, std::size_t bytes) const {
  if (!has_price(algorithms()[row].collective)) return 0;
  const auto size = static_cast<std::size_t>(inputs_.size);
  if (size <= kMostRanks) return price_of(row, bytes, size);
  // The costs of messages and of bytes grow differently: in a ring the rounds double, but the bytes
  // hardly grow.
  std::array<double, kSizes> of_messages{};
  std::array<double, kSizes> of_bytes{};
  std::size_t ranks = kMostRanks;
  for (std::size_t i = kSizes; i-- > 0; ranks /= kApart) {
    const double whole = price_of(row, bytes, ranks);
    of_messages[i] = std::min(whole, price_of(row, 0, ranks));
    of_bytes[i] = whole - of_messages[i];
  }
  const double doublings = std::log2(static_cast<double>(size) / static_cast<double>(kMostRanks));
  return extrapolated(of_messages, doublings, kMostGrowth) +
         extrapolated(of_bytes, doublings, kMostGrowthOfBytes);
}

// Schedules of all ranks on these hosts.
std::vector<Schedule> Planner::program_of(std::uint8_t row, std::size_t bytes,
                                          const std::vector<int>& hosts) const {
  const auto size = static_cast<int>(hosts.size());
  std::vector<Schedule> program;
  for (int rank = 0; rank < size; ++rank) {
    PlanRequest request;
    request.ranks = {rank, size, 0, 0, inputs_.can_answer && bytes > kLeastAnswered, hosts};
    program.push_back(algorithms()[row].write(request));
  }
  return program;
}

std::size_t Planner::segment_of(const Schedule& schedule, std::size_t chunk_bytes) const {
  const SegmentRule& rule = inputs_.segments;
  if (!inputs_.is_on_streams) return rule.bytes(schedule, chunk_bytes, inputs_.asked_segment_bytes);
  return schedule.leaves_from_memory ? std::max(rule.longest, rule.straight) : rule.longest;
}

// The price with `ranks` of the ranks.
double Planner::price_of(std::uint8_t row, std::size_t bytes, std::size_t ranks) const {
  const std::vector<int> hosts = sampled(inputs_.hosts, ranks);
  const std::vector<Schedule> program = program_of(row, bytes, hosts);
  const auto chunks = static_cast<std::size_t>(program[0].chunks / program[0].spans);
  const std::size_t chunk_bytes = std::max(ceil_divide(bytes, chunks), kElementBytes);
  const std::size_t segment = segment_of(program[0], chunk_bytes);
  const std::size_t turns = ceil_divide(chunk_bytes, segment);
  SimulationOptions options;
  options.element_bytes = kElementBytes;
  options.segment_bytes = segment;
  options.credit = inputs_.credit;
  options.keeps_events = false;
  options.hosts = hosts;
  const auto takes = [&](std::size_t played) {
    // An empty chunk costs a message too: its channel is opened anyway.
    options.count = std::max(ceil_divide(played, kElementBytes), chunks);
    return simulate(program, costs_, options).total_us;
  };
  if (turns <= kMostTurns) return takes(bytes);
  const double half = takes(chunks * segment * kMostTurns / 2);
  const double whole = takes(chunks * segment * kMostTurns);
  // If ranks share cores, twice the turns can take less time by luck. Then all turns count the
  // same.
  const double per_turn = whole > half
                              ? (whole - half) / static_cast<double>(kMostTurns - kMostTurns / 2)
                              : whole / static_cast<double>(kMostTurns);
  return whole + per_turn * static_cast<double>(turns - kMostTurns);
}

std::vector<Prediction> Planner::predict(Collective collective, std::size_t bytes,
                                         RankOrder order) {
  std::vector<Prediction> predictions;
  const auto rows = candidates(collective, order);
  if (rows.empty()) return predictions;
  const std::uint8_t chosen = choose(collective, bytes, order);
  const bool is_by_table = measured(collective, bytes, order).has_value();
  for (const std::uint8_t row : rows) {
    const bool is_chosen = row == chosen;
    predictions.push_back(
        {algorithms()[row].name, price(row, bytes), is_chosen, is_chosen && is_by_table});
  }
  return predictions;
}

}  // namespace kolo::inline v0
