#include "bench/commands/tune.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/cli/commands.h"
#include "bench/cli/ranks.h"
#include "bench/cli/sizes.h"
#include "bench/commands/algorithm_comparison.h"
#include "bench/commands/job_rows.h"
#include "bench/measure/cores.h"
#include "bench/output/atomic_file.h"
#include "bench/output/run_info.h"
#include "collectives/planner/tuning.h"
#include "transports/settings.h"

namespace kolo::bench {
namespace {

// Refuses an unwritable table before any rank starts.
void require_writable(const std::string& table) {
  if (std::filesystem::is_directory(table)) {
    throw std::invalid_argument(
        fmt::format("--out {}: cannot write: {}", table, std::strerror(EISDIR)));
  }
  try {
    if (std::error_code code; !std::filesystem::is_other(table, code)) {
      std::filesystem::remove(scratch_beside(table, "--out"));
    }
  } catch (const std::runtime_error& error) {
    throw std::invalid_argument(error.what());
  }
}

// Width of the columns with algorithms, for all collectives of the grid.
std::size_t by_width(const Arguments& arguments) {
  std::size_t width = 20;
  for (const std::string& name : arguments.tune.collectives)
    width = bench::by_width(collective_commands().at(name), "", width);
  return width;
}

class TuneReport : public ComparisonReport {
 public:
  TuneReport(const Arguments& arguments, std::ostream& table, JsonLines& json)
      : points_(arguments.tune.points),
        table_(table),
        json_(json),
        by_width_(by_width(arguments)) {}

  void begin(const Communicator& communicator, const CoreDistance& distance) override {
    transport_ = communicator.transport();
    ranks_ = communicator.size();
    table_ << fmt::format("# {}; {}\n", ranks_text(ranks_, transport_, communicator.carrier()),
                          surroundings_text(distance.last_us()));
    if (const std::string warning = costs_warning(distance); !warning.empty())
      table_ << "# " << warning << '\n';
  }

  void add(const AlgorithmComparison& contest) override {
    const Row& fastest = contest.fastest().row;
    const Row& chosen = contest.chosen().row;
    table_ << fmt::format(" {:>14} {:>5} {:>6} {:>11} {:>{}} {:>9} {:>{}} {:>9} {:>8} {:>7}\n",
                          fastest.collective, ranks_, transport_, fastest.bytes, fastest.algorithm,
                          by_width_, time_text(fastest.time_us.median), chosen.algorithm, by_width_,
                          time_text(chosen.time_us.median),
                          fmt::format("{:.1f} %", 100 * contest.distance()),
                          fmt::format("{:.1f} %", 100 * contest.spread()));
    flush_or_throw(table_, kTable);
    for (const std::string& line : json_lines(contest)) json_.add(line);
    points_.add(nlohmann::json{{"collective", to_string(fastest.problem.collective)},
                               {"ranks", ranks_},
                               {"transport", transport_},
                               {"bytes", fastest.bytes},
                               {"algorithm", fastest.algorithm},
                               {"distance", contest.distance()},
                               {"spread", contest.spread()}}
                    .dump());
  }

  void end() override {}

 private:
  JsonLines points_;
  std::ostream& table_;
  JsonLines& json_;
  std::size_t by_width_;
  std::string transport_;
  int ranks_ = 0;
};

// With JSON lines on standard output the table goes to standard error.
std::ostream& table_of(const Arguments& arguments) {
  return arguments.json == "-" ? std::cerr : std::cout;
}

void begin_table(const Arguments& arguments) {
  std::ostream& table = table_of(arguments);
  const std::string tuning = read_settings().tuning;
  const std::string who =
      tuning.empty() ? "the planner's choice" : fmt::format("the choice by {}", tuning);
  table << fmt::format("# kolo-bench tune: all algorithms in turn, beside {}\n", who);
  table << fmt::format("# {}\n# {}\n", describe_machine(), own_version());
  table
      << "# time in us: the median over the iterations of the longest over the ranks; away: extra "
         "time of the choice;\n# spread: how far apart the passes of the fastest algorithm are "
         "(the middle half of their medians)\n";
  if (const std::string text = whole_sizes_text(arguments); !text.empty())
    table << "# " << text << '\n';
  const std::size_t width = by_width(arguments);
  table << fmt::format("#{:>14} {:>5} {:>6} {:>11} {:>{}} {:>9} {:>{}} {:>9} {:>8} {:>7}\n",
                       "collective", "ranks", "over", "bytes", "fastest", width, "time", "choice",
                       width, "time", "away", "spread");
  flush_or_throw(table, kTable);
}

// Runs one job of the grid: this program again, with its ranks and transport appended; the last of
// an option counts.
int run_job(const Arguments& arguments, const std::string& transport, int ranks,
            const std::string& points, int argc, const char* const* argv) {
  Arguments job = arguments;
  job.transport = transport;
  job.ranks = ranks;
  job.tune.points = points;
  const std::string number = fmt::format("{}", ranks);
  std::vector<const char*> words(argv, argv + argc);
  for (const char* word :
       {"--transport", transport.c_str(), "--ranks", number.c_str(), kPointsFlag, points.c_str()}) {
    words.push_back(word);
  }
  return run_collective(job, static_cast<int>(words.size()), words.data());
}

std::string heading(int argc, const char* const* argv) {
  std::string command = "kolo-bench";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  std::ranges::replace(command, '\n', ' ');
  std::ranges::replace(command, '\r', ' ');
  return fmt::format("# {}\n# {}\n# {:%Y-%m-%d %H:%M} UTC, {}\n", command, describe_machine(),
                     fmt::gmtime(std::time(nullptr)), own_version());
}

TuningTable table_from(const std::vector<nlohmann::ordered_json>& points) {
  std::ostringstream text;
  for (const nlohmann::ordered_json& point : points) {
    text << point["collective"].get<std::string>() << ' ' << point["ranks"] << ' '
         << point["transport"].get<std::string>() << ' ' << point["bytes"] << ' '
         << point["algorithm"].get<std::string>() << '\n';
  }
  return TuningTable::parse(text.str(), "what was measured");
}

void summarize(const std::vector<nlohmann::ordered_json>& points, const Arguments& arguments) {
  const auto count = [&](const auto& holds) { return std::ranges::count_if(points, holds); };
  const auto near = count([](const auto& point) { return point["distance"] <= kNear; });
  const auto noisy = count([](const auto& point) { return point["spread"] > kNear; });
  const char* whose = read_settings().tuning.empty() ? "planner" : "table";
  std::ostream& table = table_of(arguments);
  table << fmt::format(
      "# the {}'s choice is within {:.0f} % of the best candidate on {} of {} ({:.1f} %)\n", whose,
      100 * kNear, near, format_count(points.size(), "point"),
      100 * static_cast<double>(near) / static_cast<double>(points.size()));
  table << fmt::format(
      "# on {} of them the passes of the fastest algorithm were more than {:.0f} % apart\n", noisy,
      100 * kNear);
  table << arguments.tune.out << '\n';
  flush_or_throw(table, kTable);
}

}  // namespace

std::unique_ptr<ComparisonReport> make_tune_report(const Arguments& arguments, std::ostream& table,
                                                   JsonLines& json) {
  return std::make_unique<TuneReport>(arguments, table, json);
}

int run_tune(const Arguments& arguments, int argc, const char* const* argv) {
  const TuneRequest& tune = arguments.tune;
  require_writable(tune.out);
  const JobRows file;
  if (holds_something(tune.out)) {
    std::cerr << fmt::format("kolo-bench: --out {}: the file is not empty; the table replaces it\n",
                             tune.out);
  }
  begin_table(arguments);
  for (const std::string& transport : tune.transports) {
    for (const int ranks : tune.ranks) {
      const int code = run_job(arguments, transport, ranks, file.path(), argc, argv);
      if (code != 0) return code;
    }
  }
  const auto points = file.read();
  write_whole(tune.out, heading(argc, argv) + table_from(points).format(), "--out");
  summarize(points, arguments);
  return 0;
}

}  // namespace kolo::bench
