#include "bench/cli/planner_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "bench/cli/commands.h"
#include "bench/cli/sizes.h"
#include "bench/commands/job_rows.h"
#include "transports/registry.h"

namespace kolo::bench {
namespace {

// Many short passes in turn: a short disturbance of the machine then affects all algorithms alike.
constexpr int kPasses = 10;
constexpr int kPassesOfTune = 6;  // for long messages each pass takes long

void add_out(CLI::App& command, TuneRequest& tune) {
  command.add_option("--out", tune.out, "The file for the table, in the format of KOLO_TUNING");
  command.add_option(kPointsFlag, tune.points)->group("");  // not for people
}

}  // namespace

void add_explain(CLI::App& app, Arguments& result, RawOptions& typed) {
  result.passes = kPasses;
  result.factor = 16;
  typed.max_bytes = "4M";
  CLI::App* command = app.add_subcommand(
      "explain",
      "Print the planner's costs, choices and reasons, beside measured times of all algorithms");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command
      ->add_option("collective", result.explained,
                   "allreduce, broadcast, ...: a command that measures")
      ->required();
  add_ranks(*command, result);
  add_sizes(*command, result, typed);
  add_end_of_help(*command, SizesOf::kElements);
  add_type(*command, typed);
  add_operation(*command, typed);
  add_reproducibility(*command, typed);
  add_timing(*command, result, typed);
}

void add_topology(CLI::App& app, Arguments& result, RawOptions& typed) {
  CLI::App* command = app.add_subcommand(
      "topology", "Print the transport, address, latency and bandwidth of every pair of ranks");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_ranks(*command, result);
  add_json_and_timeout(*command, result, typed);
}

void add_tune(CLI::App& app, Arguments& result, RawOptions& typed) {
  result.passes = kPassesOfTune;
  result.factor = 16;
  result.seconds = 0.1;
  typed.max_bytes = "4M";
  CLI::App* command = app.add_subcommand(
      "tune", "Measure all algorithms on a grid, and write a table of the fastest for KOLO_TUNING");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option(
      "-c,--collectives", typed.collectives,
      fmt::format("A list of {}; default: all", fmt::join(commands_with_a_choice(), ",")));
  command->add_option("-n,--ranks", typed.ranks, "Numbers of ranks to start on this host")
      ->capture_default_str();
  add_decorators(*command, result);
  command->add_option("-t,--transport", typed.transports, "A list of inproc,shm,tcp,...")
      ->capture_default_str();
  add_sizes(*command, result, typed);
  add_end_of_help(*command, SizesOf::kElements);
  add_out(*command, result.tune);
  add_timing(*command, result, typed);
}

void take_explained(Arguments& result) {
  result.explained = short_command(result.explained);
  require_name(result.explained, collective_command_names(), "explain");
  result.problem.collective = collective_commands().at(result.explained);
}

void take_explained_sizes(Arguments& result) {
  result.sizes = asked_sizes(result);
  result.min_bytes = *std::min_element(result.sizes.begin(), result.sizes.end());
  result.max_bytes = *std::max_element(result.sizes.begin(), result.sizes.end());
}

void take_grid(const RawOptions& typed, Arguments& result) {
  TuneRequest& tune = result.tune;
  const auto known = commands_with_a_choice();
  tune.collectives =
      typed.collectives.empty() ? known : each_once("--collectives", typed.collectives);
  for (std::string& name : tune.collectives) {
    name = short_command(name);
    require_name(name, collective_command_names(), "--collectives");
    require(std::find(known.begin(), known.end(), name) != known.end(),
            fmt::format("--collectives {}: the planner does not choose its algorithm; leave this "
                        "collective out",
                        name));
  }
  tune.ranks = parse_rank_counts(typed.ranks);
  tune.transports = parse_transports(typed.transports, "tune");
  if (tune.points.empty()) {
    for (const std::string& name : tune.transports) require_usable(name);
  }
  require(!tune.out.empty() || !tune.points.empty(),
          "tune: --out FILE is missing, the file for the table");
  result.ranks = *std::max_element(tune.ranks.begin(), tune.ranks.end());
  result.transport = tune.transports.front();
  // All-to-all cannot work in place.
  result.problem.is_in_place = std::find(tune.collectives.begin(), tune.collectives.end(),
                                         "alltoall") == tune.collectives.end();
}

}  // namespace kolo::bench
