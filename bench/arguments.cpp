#include "bench/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>

#include "bench/pattern.h"
#include "bench/peers/peers.h"
#include "bench/sizes.h"
#include "collectives/communicator.h"
#include "transports/registry.h"

namespace kolo::bench {
namespace {

constexpr const char* kAbout =
    "Measures collectives between local ranks, every result checked, and what this machine can do "
    "at best.";

const std::map<std::string, Collective> kCollectives = {
    {"allreduce", Collective::kAllReduce}, {"reduce_scatter", Collective::kReduceScatter},
    {"allgather", Collective::kAllGather}, {"broadcast", Collective::kBroadcast},
    {"barrier", Collective::kBarrier},     {"push_pull", Collective::kPushPull},
};

// Options as they are typed; what needs a second look is turned into Arguments afterwards.
struct Typed {
  std::string min_bytes = "8";
  std::string max_bytes = "256M";
  std::string segment_bytes = "0";
  std::string type = "float32";
  std::string op = "sum";
  double timeout_s = 60;
  bool is_out_of_place = false;
  bool is_unchecked = false;
};

void add_sizes(CLI::App& command, Arguments& result, Typed& typed) {
  command.add_option("-b,--min-bytes", typed.min_bytes, "Smallest size: 8, 32K, 256M")
      ->capture_default_str();
  command.add_option("-e,--max-bytes", typed.max_bytes, "Largest size")->capture_default_str();
  command.add_option("-f,--factor", result.factor, "From one size to the next")
      ->capture_default_str();
  command.add_option("-d,--type", typed.type, "float32, float64, bfloat16, int32 or int64")
      ->capture_default_str();
}

void add_measurement(CLI::App& command, Arguments& result, Typed& typed) {
  command.add_option("-n,--ranks", result.ranks, "Local ranks to start")->capture_default_str();
  command.add_option("-t,--transport", result.transport, "inproc (threads), shm, tcp, ... or auto")
      ->capture_default_str();
  command.add_option("-a,--algorithm", result.algorithm, "Instead of the one kolo chooses");
  command.add_option("--against", result.against,
                     "A peer to measure in turn with kolo: gloo, gloo:ring, gloo:bcube");
  command.add_option("--segment-bytes", typed.segment_bytes,
                     "Instead of the transport's preference");
  command.add_option("-i,--iterations", result.iterations, "Per size and library; 0: as fits")
      ->capture_default_str();
  command.add_option("-w,--warmup", result.warmup, "Iterations before each pass, not counted")
      ->capture_default_str();
  command.add_option("--passes", result.passes, "How often the libraries take turns")
      ->capture_default_str();
  command.add_option("--seconds", result.seconds, "Per size and library, where --iterations is 0")
      ->capture_default_str();
  command.add_flag("--no-check", typed.is_unchecked, "Do not look at the results");
  command.add_option("--json", result.json,
                     "Append a JSON line per row to this file; -: standard output");
  command.add_option("--timeout", typed.timeout_s, "Seconds, of every operation")
      ->capture_default_str();
}

void add_collective(CLI::App& app, const std::string& name, Collective collective,
                    Arguments& result, Typed& typed) {
  CLI::App* command = app.add_subcommand(name, "Measure " + name);
  add_measurement(*command, result, typed);
  add_sizes(*command, result, typed);
  command->add_option("-o,--op", typed.op, "sum, average, min or max")->capture_default_str();
  command->add_flag("--out-of-place", typed.is_out_of_place, "Input and output apart");
  if (collective == Collective::kPushPull) {
    command
        ->add_option("--servers", result.problem.servers,
                     "Dedicated servers, the first ranks; 0: every rank serves")
        ->capture_default_str();
  }
}

// Options that every collective takes, so that one command line serves all, and this one ignores.
std::vector<std::string> unused_options(Collective collective) {
  if (collective == Collective::kBarrier)
    return {"--min-bytes", "--max-bytes", "--factor", "--type", "--op", "--out-of-place"};
  if (collective == Collective::kBroadcast) return {"--op", "--out-of-place"};
  if (collective == Collective::kAllGather) return {"--op"};
  return {};
}

// Finds a value by the name that to_string gives it.
template <typename Value>
Value by_name(const std::string& text, std::initializer_list<Value> values, const char* flag) {
  std::string known;
  for (const Value value : values) {
    if (to_string(value) == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(to_string(value));
  }
  throw std::invalid_argument(fmt::format("{} {}: there are {}", flag, text, known));
}

template <typename Names>
void require_name(const std::string& text, const Names& names, const std::string& flag) {
  if (std::find(names.begin(), names.end(), text) != names.end()) return;
  throw std::invalid_argument(
      fmt::format("{} {}: there are {}", flag, text, fmt::join(names, ", ")));
}

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument(message);
}

void take_typed(const Typed& typed, Arguments& result) {
  result.min_bytes = parse_bytes(typed.min_bytes);
  result.max_bytes = parse_bytes(typed.max_bytes);
  result.segment_bytes = parse_bytes(typed.segment_bytes);
  result.problem.type = by_name(typed.type,
                                {ElementType::kFloat32, ElementType::kFloat64,
                                 ElementType::kBFloat16, ElementType::kInt32, ElementType::kInt64},
                                "--type");
  result.problem.op = by_name(
      typed.op, {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax}, "--op");
  result.problem.is_in_place = !typed.is_out_of_place;
  result.is_checked = !typed.is_unchecked;
  result.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(typed.timeout_s * 1000));
}

// What was given and has no meaning is remembered, to be said, and is as if it had not been given.
void drop_unused(const CLI::App& command, Arguments& result) {
  const Collective collective = result.problem.collective;
  for (const std::string& name : unused_options(collective)) {
    if (command.count(name) > 0) result.without_meaning.push_back(name);
  }
  const Arguments defaults;
  if (!reduces(collective)) result.problem.op = defaults.problem.op;
  if (collective == Collective::kBroadcast) result.problem.is_in_place = true;
  if (collective != Collective::kBarrier) return;
  result.problem = defaults.problem;
  result.problem.collective = collective;
  result.min_bytes = defaults.min_bytes;
  result.max_bytes = defaults.max_bytes;
  result.factor = defaults.factor;
}

// A launcher has decided how many ranks there are.
void take_launched(const CLI::App& command, int launched, Arguments& result) {
  if (launched == 0) return;
  require(command.count("--ranks") == 0 || result.ranks == launched,
          fmt::format("--ranks {} contradicts the launcher, which started {} (WORLD_SIZE); leave "
                      "--ranks out, or run kolo-bench without a launcher",
                      result.ranks, launched));
  result.ranks = launched;
}

void require_whole_elements(std::size_t bytes, ElementType type, const char* flag) {
  require(bytes == 0 || bytes >= element_bytes(type),
          fmt::format("{} {}: less than one element; {} has {} bytes", flag, bytes, to_string(type),
                      element_bytes(type)));
}

void require_sense(const Arguments& arguments) {
  const Problem& problem = arguments.problem;
  require(arguments.ranks >= 1 && arguments.ranks <= 1024,
          fmt::format("--ranks {}: 1 to 1024", arguments.ranks));
  require(problem.servers >= 0 && problem.servers < arguments.ranks,
          fmt::format("--servers {}: at least one of the {} ranks must work", problem.servers,
                      arguments.ranks));
  require(arguments.iterations >= 0,
          fmt::format("--iterations {}: 0 or more", arguments.iterations));
  require(arguments.warmup >= 0, fmt::format("--warmup {}: 0 or more", arguments.warmup));
  require(arguments.passes >= 1 && arguments.passes <= 100,
          fmt::format("--passes {}: 1 to 100", arguments.passes));
  require(arguments.seconds > 0, "--seconds: more than 0");
  require(arguments.timeout.count() > 0, "--timeout: more than 0");
  if (arguments.transport != "auto")
    require_name(arguments.transport, transport_names(), "--transport");
  if (!arguments.algorithm.empty()) {
    require_name(arguments.algorithm, algorithm_names(problem.collective),
                 arguments.command + " --algorithm");
  }
  if (!arguments.against.empty()) require_peer(arguments.against);
  require_whole_elements(arguments.max_bytes, problem.type, "--max-bytes");
  require_whole_elements(arguments.min_bytes, problem.type, "--min-bytes");
  sweep(arguments.min_bytes, arguments.max_bytes, arguments.factor, element_bytes(problem.type));
  require_exact({problem.type, problem.op, arguments.ranks - problem.servers, 0});
}

// CLI11 would only say that some command is missing.
void require_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  require(std::find(names.begin(), names.end(), argv[1]) != names.end(),
          fmt::format("there is no command '{}'; there are {}", argv[1], fmt::join(names, ", ")));
}

// CLI11 lists everything from the first unknown word on, backwards. This finds that word.
std::string first_unexpected(const CLI::App& command, int argc, const char* const* argv) {
  std::string stray;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.size() < 2 || word[0] != '-') {
      if (stray.empty()) stray = word;
      continue;
    }
    const bool is_long = word[1] == '-';
    const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) return fmt::format("has no option '{}'", name);
    if (option->get_items_expected_max() > 0 && name == word) ++i;  // its value
  }
  return fmt::format("does not expect '{}'", stray);
}

std::string explain(const CLI::ParseError& error, const CLI::App& app, int argc,
                    const char* const* argv) {
  const auto commands = app.get_subcommands();
  if (commands.empty()) return fmt::format("{}; see kolo-bench --help", error.what());
  const std::string& name = commands.front()->get_name();
  const bool is_unexpected = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::string what = is_unexpected ? " " + first_unexpected(*commands.front(), argc, argv)
                                         : fmt::format(": {}", error.what());
  return fmt::format("{}{}; see kolo-bench {} --help", name, what, name);
}

}  // namespace

bool parse_arguments(int argc, const char* const* argv, Arguments& result, int launched) {
  CLI::App app{kAbout, "kolo-bench"};
  app.require_subcommand(1);
  Typed typed;
  for (const auto& entry : kCollectives)
    add_collective(app, entry.first, entry.second, result, typed);
  CLI::App* limits = app.add_subcommand("limits", "What this machine can do at best");
  limits->add_option("--json", result.json, "Append JSON lines to this file; -: standard output");
  limits->add_flag("--quick", result.is_quick,
                   "Fewer sizes and repeats: seconds instead of a minute");
  CLI::App* plot = app.add_subcommand("plot", "Draw JSON lines: time and bandwidth against size");
  plot->add_option("files", result.plot_files, "Files of JSON lines")->required();
  plot->add_option("-o,--out", result.plot_folder, "Folder for the pictures")
      ->capture_default_str();
  require_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    app.exit(done);
    return false;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(explain(error, app, argc, argv));
  }
  const CLI::App& command = *app.get_subcommands().front();
  result.command = command.get_name();
  const auto found = kCollectives.find(result.command);
  if (found == kCollectives.end()) return true;
  result.problem.collective = found->second;
  take_typed(typed, result);
  drop_unused(command, result);
  take_launched(command, launched, result);
  require_sense(result);
  return true;
}

}  // namespace kolo::bench
