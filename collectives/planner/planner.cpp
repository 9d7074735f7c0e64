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
#include "collectives/schedule/simulator.h"

namespace kolo {
namespace {

// What is played; beyond it prices are extrapolated from those of 1, 4 and 16 ranks. (Of 8, and by
// doublings, what takes its rounds by fours would go up in steps that tell nothing.)
constexpr std::size_t kMostRanks = 16;
constexpr std::size_t kMostTurns = 4;
constexpr std::size_t kElementBytes = sizeof(float);

// From one doubling of the ranks to the next, what a doubling adds grows so much: not at all per
// round of a tree, twice in a ring, more where ranks share cores.
constexpr double kLeastGrowth = 0.5;
constexpr double kMostGrowth = 4;
constexpr double kMostGrowthOfBytes = 2;
constexpr std::size_t kSizes = 3;  // of ranks that are played to see the growth, each 4 times
constexpr std::size_t kApart = 4;  // the one before

constexpr double kDoubtPerHop = 0.02;  // where ranks share cores
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

// Those that ask for more than a rank and a size cannot be played; they have no rivals either.
bool has_price(Collective collective) {
  return !has_servers(collective) && collective != Collective::kMessage;
}

// The value after some more doublings, where these were two doublings apart.
double extrapolated(const std::array<double, kSizes>& values, double doublings,
                    double most_growth) {
  double value = values[2];
  double added = values[2] - values[1];
  const double before = values[1] - values[0];
  const double growth = before > 0 && added > 0
                            ? std::clamp(std::sqrt(added / before), kLeastGrowth, most_growth)
                            : 1;
  added *= growth / (1 + growth);  // by the second of them
  for (; doublings > 0; --doublings) {
    added *= growth;
    value += added * std::min(doublings, 1.0);
  }
  return std::max(value, 0.0);
}

// The hosts of so many ranks, spread evenly, and numbered anew.
std::vector<int> thinned(const std::vector<int>& hosts, std::size_t ranks) {
  std::vector<int> kept;
  std::vector<int> numbers;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const int host = hosts[rank * hosts.size() / ranks];
    const auto known = std::ranges::find(numbers, host);
    kept.push_back(static_cast<int>(known - numbers.begin()));
    if (known == numbers.end()) numbers.push_back(host);
  }
  return kept;
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
        fmt::format("{} is the number of no collective", static_cast<int>(collective)));
  }
  Choices& choices = choices_[table];
  if (has_points_) {  // which may lie between two powers of two
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

// Where ranks share cores, whom a rank waits for may not have one, and the clock, which gives cores
// to all in turn, knows too little of that: rings of 4 ranks on 2 cores, whose price is the same as
// others', took up to twice as long. So every message that waits for another counts a little; more
// than that would wrong the rings of 8 ranks, which are kind to caches.
double Planner::doubt_of(std::uint8_t row, std::size_t bytes) const {
  if (costs_.cores == 0 || inputs_.is_on_streams) return 0;
  const auto size = static_cast<std::size_t>(inputs_.size);
  const std::vector<int> hosts = thinned(inputs_.hosts, std::min(size, kMostRanks));
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

// What the table says, where that is a candidate.
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
  // What messages cost grows otherwise than what bytes do: rounds in a ring double where the bytes
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

// The schedules of ranks on these hosts.
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

// Among so many of the ranks.
double Planner::price_of(std::uint8_t row, std::size_t bytes, std::size_t ranks) const {
  const std::vector<int> hosts = thinned(inputs_.hosts, ranks);
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
    // A chunk without elements costs a message as well: its channel is opened all the same.
    options.count = std::max(ceil_divide(played, kElementBytes), chunks);
    return simulate(program, costs_, options).total_us;
  };
  if (turns <= kMostTurns) return takes(bytes);
  const double half = takes(chunks * segment * kMostTurns / 2);
  const double whole = takes(chunks * segment * kMostTurns);
  // Where ranks that share cores happen to find them at better moments, twice the turns can take
  // less time: then all turns count alike.
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

}  // namespace kolo
