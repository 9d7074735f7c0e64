#include "bench/commands/algorithm_comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/cli/commands.h"
#include "bench/cli/sizes.h"

namespace kolo::bench {
namespace {

// The arguments for the comparisons of one collective.
Arguments of_collective(const Arguments& arguments, const std::string& command) {
  Arguments result = arguments;
  result.command = command;
  result.problem.collective = collective_commands().at(command);
  if (result.problem.collective == Collective::kAllToAll) result.problem.is_in_place = false;
  if (arguments.command == "tune")
    result.problem.is_in_place = result.problem.collective != Collective::kAllToAll;
  return result;
}

bool has_shares(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter ||
         collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kAllToAll;
}

// For collectives with shares, sizes start with one element per rank, as in real programs.
std::vector<std::size_t> sizes_of_points(const Arguments& arguments) {
  const Problem& problem = arguments.problem;
  if (problem.collective == Collective::kBarrier || !arguments.sizes.empty())
    return sizes_of(arguments);
  const std::size_t least =
      has_shares(problem.collective)
          ? element_bytes(problem.type) * static_cast<std::size_t>(arguments.ranks)
          : 0;
  return sweep(std::max(arguments.min_bytes, least), std::max(arguments.max_bytes, least),
               arguments.factor, granule_of(problem, arguments.ranks));
}

AlgorithmComparison hold(const Communicator& communicator, Bench& bench,
                         const std::vector<Library*>& libraries, std::size_t bytes) {
  AlgorithmComparison contest;
  const std::vector<Row> rows = bench.measure(libraries, bytes);
  const Problem& problem = rows.front().problem;
  const auto said =
      communicator.predict(problem.collective, rows.front().bytes, problem.type, problem.op);
  for (std::size_t i = 0; i < rows.size(); ++i) contest.contestants.push_back({rows[i], said[i]});
  return contest;
}

}  // namespace

const ComparedAlgorithm& AlgorithmComparison::fastest() const {
  return *std::ranges::min_element(
      contestants, {}, [](const ComparedAlgorithm& one) { return one.row.time_us.median; });
}

const ComparedAlgorithm& AlgorithmComparison::chosen() const {
  return *std::ranges::find_if(contestants,
                               [](const ComparedAlgorithm& one) { return one.said.is_chosen; });
}

double AlgorithmComparison::distance() const {
  return chosen().row.time_us.median / fastest().row.time_us.median - 1;
}

double AlgorithmComparison::spread() const {
  const Row& row = fastest().row;
  return (quantile(row.pass_us, 0.75) - quantile(row.pass_us, 0.25)) / row.time_us.median;
}

std::string AlgorithmComparison::reason() const {
  if (contestants.size() == 1) return "the only one";
  if (chosen().said.is_by_table) return "the table says so";
  if (chosen().said.time_us <= 0) return "the first; these have no price";
  const auto is_cheaper = [this](const ComparedAlgorithm& one) {
    return one.said.time_us < chosen().said.time_us;
  };
  return std::ranges::any_of(contestants, is_cheaper)
             ? "the price, and fewer waits for ranks that share cores"
             : "the cheapest price";
}

std::vector<std::string> json_lines(const AlgorithmComparison& contest) {
  std::vector<std::string> lines;
  for (const ComparedAlgorithm& one : contest.contestants) {
    auto line = nlohmann::ordered_json::parse(json_line(one.row));
    line["predicted_us"] = one.said.time_us;
    line["is_chosen"] = one.said.is_chosen;
    line["reason"] = one.said.is_chosen ? contest.reason() : "";
    line["is_fastest"] = &one == &contest.fastest();
    lines.push_back(line.dump());
  }
  return lines;
}

std::uint64_t compare_algorithms(std::shared_ptr<Communicator> communicator, RankGroup& group,
                                 CoreDistance distance, const Arguments& arguments,
                                 ComparisonReport* report) {
  distance.add(group.cache_line_round_trip());
  if (report != nullptr) report->begin(*communicator, distance);
  std::vector<std::string> commands = arguments.tune.collectives;
  if (commands.empty()) commands.push_back(arguments.explained);
  std::uint64_t wrong = 0;
  for (const std::string& command : commands) {
    const Arguments one = of_collective(arguments, command);
    const auto libraries = make_kolo_by_all(communicator, one.problem);
    std::vector<Library*> all;
    for (const auto& library : libraries) all.push_back(library.get());
    Bench bench(group, one);
    for (const std::size_t bytes : sizes_of_points(one)) {
      const AlgorithmComparison contest = hold(*communicator, bench, all, bytes);
      for (const ComparedAlgorithm& each : contest.contestants) wrong += each.row.wrong.value_or(0);
      if (report != nullptr) report->add(contest);
    }
  }
  if (report != nullptr) report->end();
  return wrong;
}

}  // namespace kolo::bench
