#include "train/crossover/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <stdexcept>

#include "train/crossover/crossover.h"
#include "train/crossover/crossover_report.h"
#include "train/experiment/rank_process.h"
#include "train/report/publish.h"
#include "transports/error.h"
#include "transports/launch/launch.h"
#include "transports/rendezvous.h"

namespace kolo::train {
namespace {

int run_as_crossover_rank(const CrossoverOptions& options,
                          const std::vector<std::string>& arguments) {
  const LaunchEnvironment who = launch_environment();
  if (who.size != options.processes()) {
    throw UsageError(fmt::format(
        "crossover: --ranks {} needs {} processes, as many servers as workers; {} were started",
        options.ranks, options.processes(), who.size));
  }
  if (who.rank == 0) require_report_folder(options.report);
  try {
    const CrossoverResult result = measure_crossover(options);
    if (who.rank == 0) publish_crossover(options, arguments, result);
  } catch (const Error& error) {
    return report_failure(error, who.rank);
  }
  return 0;
}

int launch(const CrossoverOptions& options, const std::vector<std::string>& arguments) {
  LaunchRequest request;
  request.ranks = options.processes();
  request.command = {own_program()};
  request.command.insert(request.command.end(), arguments.begin(), arguments.end());
  request.output = RankOutput::kRankZeroPlain;
  const LaunchResult result = launch_ranks(request);
  if (result.exit_code != 0) std::fprintf(stderr, "kolo-train: %s\n", result.message.c_str());
  return result.exit_code;
}

}  // namespace

int run_crossover(const CrossoverOptions& options, const std::vector<std::string>& arguments) {
  if (is_launched()) return run_as_crossover_rank(options, arguments);
  check_report_folder(options.report);
  return launch(options, arguments);
}

}  // namespace kolo::train
