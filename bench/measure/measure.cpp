#include "bench/measure/measure.h"

#include <algorithm>

#include "bench/limits/run_limit.h"
#include "bench/measure/pass_filter.h"
#include "bench/measure/pass_runner.h"

namespace kolo::bench {
namespace {

constexpr double kDisturbed = 2;  // factor over the fastest library

}  // namespace

const std::string& name_of(const Row& row) { return row.peer.empty() ? row.library : row.peer; }

std::optional<double> algorithm_bandwidth(const Row& row) {
  if (row.ranks == 1 || row.bytes == 0) return std::nullopt;
  return gigabytes_per_second(row.bytes, row.time_us.median);
}

std::optional<double> bus_bandwidth(const Row& row) {
  const auto algbw = algorithm_bandwidth(row);
  if (!algbw) return std::nullopt;
  return *algbw * bus_factor(row.problem.collective, row.ranks, row.problem.servers);
}

Bench::Bench(RankGroup& group, const Arguments& arguments, Pages pages)
    : group_(group), arguments_(arguments) {
  const Problem& problem = arguments.problem;
  const bool has_data = problem.collective != Collective::kBarrier;
  const std::size_t rounding_up =
      static_cast<std::size_t>(group.size()) * element_bytes(problem.type);
  const std::size_t bytes = has_data ? arguments.max_bytes + rounding_up : 0;
  data_ = Buffer(bytes, pages);
  if (!problem.is_in_place) input_ = Buffer(bytes, pages);
}

std::optional<double> credible_limit(const std::vector<double>& limits_us,
                                     const std::vector<Row>& rows) {
  if (limits_us.empty() || rows.empty()) return std::nullopt;
  const auto p10 = [](const Row& row) { return row.time_us.p10; };
  return credible_limit(limits_us, p10(*std::ranges::min_element(rows, {}, p10)));
}

std::optional<double> credible_limit(const std::vector<double>& limits_us, double quickest_us) {
  if (limits_us.empty()) return std::nullopt;
  const double least = std::ranges::min(limits_us);
  return least > kDisturbed * quickest_us ? std::nullopt : std::optional(least);
}

std::vector<Row> Bench::measure(const std::vector<Library*>& libraries, std::size_t bytes,
                                RunLimit* limit) {
  PassRequest turn;
  turn.problem = arguments_.problem;
  turn.problem.count = bytes / element_bytes(turn.problem.type);
  turn.is_checked = arguments_.is_checked;
  turn.seconds = arguments_.seconds / arguments_.passes;
  const std::size_t limits_seat = libraries.size();
  PassFilter regimes(libraries.size() + (limit != nullptr ? 1 : 0), arguments_.iterations > 0);
  const auto end_turn = [&](std::size_t player) {
    regimes.took(player);
    const bool is_last = player + 1 == libraries.size();
    if (is_last || !regimes.keeps_all()) regimes.probe(group_.cache_line_round_trip());
  };
  std::vector<std::optional<double>> limit_turns_us;
  std::vector<Played> played(libraries.size());
  regimes.probe(group_.cache_line_round_trip());
  for (int pass = 0; regimes.goes_on(pass, arguments_.passes); ++pass) {
    if (limit != nullptr) {
      limit_turns_us.push_back(limit->measure(bytes));
      end_turn(limits_seat);
    }
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      run_pass(*libraries[i], turn, pass, played[i]);
      end_turn(i);
    }
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    const SelectedPasses counted = regimes.count(i, played[i].turns_us);
    rows.push_back(row_of(*libraries[i], turn.problem, bytes, played[i], counted));
    rows.back().distance = regimes.distance();
  }
  const auto limit_us = credible_limit(regimes.known(limits_seat, limit_turns_us), rows);
  for (Row& row : rows) row.limit_us = limit_us;
  return rows;
}

Row Bench::row_of(Library& library, const Problem& problem, std::size_t bytes, const Played& played,
                  const SelectedPasses& counted) const {
  Row row;
  row.library = library.name();
  row.version = library.version();
  row.transport = library.transport();
  row.carrier = library.carrier();
  row.algorithm = library.algorithm(problem);
  row.collective = arguments_.command;
  row.problem = problem;
  row.ranks = group_.size();
  row.bytes = bytes;
  row.iterations = counted.times_us.size();
  row.left_out = counted.left_out;
  row.time_us = quantiles(counted.times_us);
  row.average_us = average(counted.times_us);
  row.pass_us = counted.medians_us;
  row.first_us = played.first_us;
  if (arguments_.is_checked) row.wrong = played.wrong;
  row.device = library.device();
  row.enqueue_us = library.take_enqueue_us();
  if (row.library == "kolo") {
    row.form = arguments_.form;
    row.is_memory_its_own = arguments_.is_memory_its_own;
    row.reproducibility = arguments_.reproducibility;
    row.segment_bytes = arguments_.segment_bytes;
  }
  return row;
}

// A library's first pass sets the number of iterations of its later passes.
void Bench::run_pass(Library& library, PassRequest turn, int pass, Played& played) {
  const auto passes = static_cast<std::size_t>(arguments_.passes);
  const auto asked = static_cast<std::size_t>(arguments_.iterations);
  turn.iterations = asked > 0 ? std::max<std::size_t>(1, asked / passes) : played.per_pass;
  if (asked > 0) turn.seconds = 0;
  turn.warmup = pass == 0 ? arguments_.warmup : 1;
  turn.checks_waiting = pass == 0 && arguments_.is_checked;
  turn.iteration = iteration_;
  std::byte* data = data_.data();
  std::byte* input = input_.data();
  if (arguments_.is_memory_its_own && library.communicator() != nullptr) {
    if (!allocated_data_) allocated_data_ = library.allocate(data_.bytes());
    if (!allocated_input_) allocated_input_ = library.allocate(input_.bytes());
    data = allocated_data_.get();
    input = allocated_input_.get();
  }
  library.place({data, data_.bytes()}, {input, input_.bytes()});
  PassRunner player(group_, data, input);
  const PassResult result = library.runs_in_workers() ? library.run_pass(turn, data_, input_)
                                                      : player.run_pass(library, turn);
  if (pass == 0) played.first_us = result.first_us;
  played.per_pass = result.times_us.size();
  played.turns_us.push_back(result.times_us);
  played.wrong += result.wrong;
  iteration_ = result.iteration;
}

}  // namespace kolo::bench
