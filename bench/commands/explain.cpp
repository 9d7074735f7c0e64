#include "bench/commands/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "bench/cli/sizes.h"
#include "bench/measure/cores.h"
#include "bench/output/run_info.h"
#include "transports/settings.h"

namespace kolo::bench {
namespace {

constexpr double kMiB = 1 << 20;

std::string describe(const Link& link, const char* where) {
  return fmt::format("#   {:<16} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>9.2f} {:>9.2f}\n", where,
                     link.latency_us, link.send_us, link.receive_us, link.next_us,
                     link.send_us_per_byte * kMiB, link.receive_us_per_byte * kMiB);
}

int most_ranks_of_a_host(std::span<const int> hosts) {
  std::ptrdiff_t most = 0;
  for (const int host : hosts) most = std::max(most, std::ranges::count(hosts, host));
  return static_cast<int>(most);
}

// With --reproducibility ordered the choice must not depend on measured costs.
bool are_measured(const Arguments& arguments) {
  return arguments.reproducibility != Reproducibility::kOrdered;
}

std::string heading_of_costs(const Arguments& arguments) {
  if (arguments.ranks == 1) return "# one rank: nothing to measure, nothing to choose\n";
  const char* whence =
      are_measured(arguments)
          ? "measured as the job began"
          : "as the transport declares them: results must not depend on measurements";
  return fmt::format("# costs, {}:\n", whence);
}

std::string conclusion(const AlgorithmComparison& contest) {
  const ComparedAlgorithm& chosen = contest.chosen();
  std::string text = fmt::format("# {}: {} is chosen ({})", format_bytes(chosen.row.bytes),
                                 chosen.row.algorithm, contest.reason());
  if (contest.contestants.size() == 1) return text + "\n";
  if (&chosen == &contest.fastest()) return text + " and is the fastest\n";
  return text +
         fmt::format(" and takes {:.1f} % longer than {}, the fastest{}\n",
                     100 * contest.distance(), contest.fastest().row.algorithm,
                     contest.distance() < contest.spread()
                         ? fmt::format(", whose passes are {:.1f} % apart", 100 * contest.spread())
                         : "");
}

}  // namespace

std::string describe(const Costs& costs, int hosts, int ranks) {
  std::string text = fmt::format("#   {:<16} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}\n", "us",
                                 "latency", "send", "receive", "next", "send/MiB", "recv/MiB");
  if (hosts == 1 || ranks > 1) text += describe(costs.local, "within a host");
  if (hosts > 1) text += describe(costs.remote, "between hosts");
  text += fmt::format(
      "#   a step {:.3f} us; a pass over memory {:.2f} us/MiB, one that reduces "
      "{:.2f} us/MiB\n",
      costs.overhead_us, costs.copy_us_per_byte * kMiB, costs.reduce_us_per_byte * kMiB);
  if (costs.cores > 0 && ranks > costs.cores) {
    text += fmt::format(
        "#   {} ranks share {} cores: the next rank runs {:.3f} us after one starts to "
        "wait\n",
        ranks, costs.cores, costs.switch_us);
  }
  return text;
}

std::size_t Explanation::by_width() const {
  constexpr std::size_t kLeast = 20;
  return bench::by_width(arguments_.problem.collective, "", kLeast);
}

void Explanation::begin(const Communicator& communicator, const CoreDistance& distance) {
  const Problem& problem = arguments_.problem;
  const auto hosts = communicator.hosts();
  table_ << fmt::format(
      "# kolo-bench explain {}: {}{}, {}{}\n", arguments_.explained,
      ranks_text(arguments_.ranks, communicator.transport(), communicator.carrier()),
      servers_text(problem), problem.is_in_place ? "in place" : "out of place",
      mode_text(arguments_.reproducibility));
  table_ << fmt::format("# {}; {}\n# {}\n", describe_machine(),
                        surroundings_text(distance.last_us()), own_version());
  table_ << heading_of_costs(arguments_);
  if (arguments_.ranks > 1) {
    const int most = *std::ranges::max_element(hosts) + 1;
    table_ << describe(communicator.costs(), most, most_ranks_of_a_host(hosts));
  }
  const std::string warning = costs_warning(distance);
  if (are_measured(arguments_) && !warning.empty()) table_ << "# " << warning << '\n';
  if (const std::string path = read_settings().tuning; !path.empty())
    table_ << fmt::format("# measured choices: {} (KOLO_TUNING)\n", path);
  if (const std::string text = whole_sizes_text(arguments_); !text.empty())
    table_ << "# " << text << '\n';
  table_ << fmt::format("#{:>11} {:>11} {:>7} {:>{}} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}\n",
                        "bytes", "type", "op", "by", by_width(), "predicted", "measured", "p10",
                        "p90", "pred/meas", "wrong");
  flush_or_throw(table_, kTable);
}

void Explanation::add(const AlgorithmComparison& contest) {
  for (const ComparedAlgorithm& one : contest.contestants) {
    const Row& row = one.row;
    const bool has_price = one.said.time_us > 0;
    table_ << fmt::format(
        " {:>11} {:>11} {:>7} {:>{}} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}{}{}\n", row.bytes,
        type_text(row), op_text(row), row.algorithm, by_width(),
        has_price ? time_text(one.said.time_us) : "-", time_text(row.time_us.median),
        time_text(row.time_us.p10), time_text(row.time_us.p90),
        has_price ? ratio_text(one.said.time_us / row.time_us.median) : "-", wrong_text(row),
        one.said.is_chosen ? "  chosen" : "", &one == &contest.fastest() ? "  fastest" : "");
  }
  table_ << conclusion(contest);
  flush_or_throw(table_, kTable);
  for (const std::string& line : json_lines(contest)) json_.add(line);
}

void Explanation::end() {
  table_ << "# time in us: the longest over the ranks after a barrier; median, 10th and 90th "
            "percentile of the iterations\n";
  flush_or_throw(table_, kTable);
}

}  // namespace kolo::bench
