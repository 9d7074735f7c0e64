#include "bench/cli/tool_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "bench/cli/commands.h"
#include "bench/cli/table_flags.h"
#include "bench/limits/limits.h"
#include "collectives/communicator.h"

namespace kolo::bench {
namespace {

void add_limits(CLI::App& app, Arguments& result, RawOptions& typed) {
  CLI::App* command = app.add_subcommand("limits", "Measure the limits of this machine");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option("--only", typed.limits,
                      fmt::format("A list of {}; default: all", fmt::join(kLimits, ",")));
  command->add_option("--json", result.json, "Append JSON lines to this file; -: standard output");
  command->add_flag("--quick", result.is_quick,
                    "Fewer sizes and repeats: seconds instead of minutes");
}

void add_plot(CLI::App& app, Arguments& result) {
  CLI::App* command =
      app.add_subcommand("plot", "Draw JSON lines: time and bandwidth against size");
  command->add_option("files", result.plot_files, "Files of JSON lines")->required();
  command->add_option("-o,--out", result.plot_folder, "Folder for the pictures")
      ->capture_default_str();
  command->add_flag("--overview", result.is_overview,
                    "One picture per transport and number of ranks, a panel per collective");
  command->add_flag(
      "--table", result.is_table_plot,
      "Two bar charts by size and number of processes, as the command table draws them");
  command->add_option("--format", result.plot_format,
                      "png, svg or pdf, or a list; default: png,svg, for an overview png");
}

void add_draw(CLI::App& app, DrawRequest& draw, RawOptions& typed) {
  CLI::App* command = app.add_subcommand(
      "draw", "Draw an algorithm: a space-time diagram (SVG), and the table of its steps");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option("collective", draw.name, "allreduce, broadcast, ...: a command that measures")
      ->required();
  command->add_option("-a,--algorithm", draw.algorithm,
                      "Name of the algorithm; default: the first");
  command->add_option("-n,--ranks", draw.ranks, "Number of ranks")->capture_default_str();
  command->add_option("--root", draw.root, "The root, if the collective has one")
      ->capture_default_str();
  command->add_option(
      "--hosts", typed.draw_hosts,
      "Number of hosts of equal size, or the host of each rank: 0,0,1,1; default: one");
  command->add_option("-b,--bytes", typed.draw_bytes, "Size of the data")->capture_default_str();
  command->add_option("--segment-bytes", typed.draw_segment_bytes, "Size of a segment")
      ->capture_default_str();
  command
      ->add_option("--latency", draw.costs.local.latency_us,
                   "Latency of a message, in microseconds")
      ->capture_default_str();
  command->add_option("--servers", draw.servers,
                      "push, pull: dedicated servers, the first ranks; 0: every rank serves");
  command->add_flag("--update", draw.has_update, "push, push_pull: servers update the sums");
  command->add_flag("--answers", draw.can_answer, "Peers answer in place, as over shared memory");
  command->add_option("-o,--out", draw.out, "The file; default: COLLECTIVE_ALGORITHM_RANKS.svg");
}

void add_diff(CLI::App& app, Arguments& result) {
  CLI::App* command = app.add_subcommand(
      "diff", "Compare two files of JSON lines, and tell slower rows from noise");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option("old", result.old_file, "JSON lines of the old run")->required();
  command->add_option("new", result.new_file, "JSON lines of the new run")->required();
  command->add_option("--least", result.least_percent, "Percent; smaller differences are noise")
      ->capture_default_str();
}

void add_timeline(CLI::App& app, TimelineRequest& timeline) {
  CLI::App* command = app.add_subcommand(
      "timeline", "Merge the timelines of several ranks (KOLO_TIMELINE) into one file");
  command->add_option("files", timeline.files, "FILE.0.json FILE.1.json ...")->required();
  command->add_option("-o,--out", timeline.out, "The file")->capture_default_str();
}

void add_interpreter(CLI::App& app, Arguments& result) {
  CLI::App* command = app.add_subcommand(
      "interpreter",
      "Measure the cost of a schedule against a loop written by hand, and of planning");
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command->add_option("-n,--ranks", result.ranks, "Ranks of the rings in threads, 2 to 64")
      ->capture_default_str();
  command->add_flag("--quick", result.is_quick, "Tiny sizes, as a trial");
}

void take_draw(const RawOptions& typed, DrawRequest& draw) {
  draw.name = short_command(draw.name);
  require_name(draw.name, collective_command_names(), "draw");
  draw.collective = collective_commands().at(draw.name);
  if (!draw.algorithm.empty()) {
    require_name(draw.algorithm, algorithm_names(draw.collective), draw.name + " --algorithm");
  }
  if (!typed.draw_hosts.empty()) {
    const auto hosts = split_list("--hosts", typed.draw_hosts);
    draw.hosts = parse_hosts(fmt::format("{}", fmt::join(hosts, ",")), draw.ranks);
  }
  draw.bytes = parse_size("--bytes", typed.draw_bytes);
  draw.segment_bytes = parse_size("--segment-bytes", typed.draw_segment_bytes);
  require(
      draw.segment_bytes >= kLeastSegment,
      fmt::format("--segment-bytes {}: expected {} or more", draw.segment_bytes, kLeastSegment));
  require(draw.costs.local.latency_us >= 0 && draw.costs.local.latency_us <= 1e9,
          fmt::format("--latency {}: expected 0 to 1e9 microseconds", draw.costs.local.latency_us));
}

}  // namespace

void add_tools(CLI::App& app, Arguments& result, RawOptions& typed) {
  add_limits(app, result, typed);
  add_plot(app, result);
  app.add_subcommand("peers",
                     "List the peers in this build and their variants, as --against takes them");
  app.add_subcommand("transports",
                     "List the transports in this build, and whether they work on this machine");
  add_diff(app, result);
  add_timeline(app, result.timeline);
  add_draw(app, result.draw, typed);
  add_interpreter(app, result);
  add_table(app, result, typed);
}

void take_tools(const RawOptions& typed, int launched, Arguments& result) {
  require(result.command != "limits" || launched <= 1,
          "limits measures the whole machine, and several ranks at once would disturb each other: "
          "run it without a launcher");
  require(!result.is_table_plot || !result.is_overview,
          "plot draws --table or --overview; leave one out");
  if (result.command == "table") take_table(typed, launched, result);
  require(result.command != "diff" || (result.least_percent >= 0 && result.least_percent <= 1000),
          fmt::format("--least {}: expected 0 to 1000 percent", result.least_percent));
  if (result.command == "draw") take_draw(typed, result.draw);
  if (result.command == "limits" && !typed.limits.empty()) {
    result.limits = split_list("--only", typed.limits);
    for (const std::string& name : result.limits) require_name(name, kLimits, "--only");
  }
  require(result.command != "interpreter" || (result.ranks >= 2 && result.ranks <= 64),
          fmt::format("--ranks {}: expected 2 to 64", result.ranks));
}

}  // namespace kolo::bench
