#include "bench/cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "bench/cli/commands.h"
#include "bench/cli/flags.h"
#include "bench/cli/p2p_flags.h"
#include "bench/cli/planner_flags.h"
#include "bench/cli/sizes.h"
#include "bench/cli/tool_flags.h"
#include "bench/cli/usage_errors.h"
#include "bench/commands/job_rows.h"
#include "bench/measure/call_form.h"
#include "bench/measure/pattern.h"
#include "bench/measure/rank_group.h"
#include "bench/output/run_info.h"
#include "bench/peers/peers.h"
#include "collectives/algorithms/algorithm_table.h"
#include "collectives/communicator.h"
#include "collectives/planner/tuning.h"
#include "transports/plugin/registration.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::bench {
namespace {

constexpr const char* kAbout =
    "Measures collectives between local ranks, checks every result, and measures the limits of "
    "this machine.";

constexpr double kLongestTimeoutS = 1e6;
constexpr std::size_t kMostSegment = std::size_t{1} << 30;

constexpr const char* kMore =
    "kolo-bench COMMAND --help lists a command's options.\n"
    "Exit code: 0 success, 1 a failure, 2 a wrong option or variable, 3 wrong "
    "results; of diff: 1 a\nregression, 4 nothing could be compared; 128 + the signal that killed "
    "a "
    "rank.";

// Help texts show the default of an option in brackets. The description says which values are
// valid.
class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string text = " " + get_label(option->get_type_name());
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
    if (const std::string without = option->get_default_str(); !without.empty())
      text += fmt::format(" [{}]", without);
    return text + (option->get_required() ? " " + get_label("REQUIRED") : "");
  }
};

void add_measurement(CLI::App& command, Collective collective, Arguments& result,
                     RawOptions& typed) {
  add_ranks(command, result);
  command.add_option("-a,--algorithm", result.algorithm,
                     fmt::format("{}, or all of them in turn (all); default: kolo chooses",
                                 fmt::join(algorithm_names(collective), ", ")));
  command.add_option(
      "--against", typed.against,
      "Peers to measure in turn with kolo: openmpi,mpich,gloo; gloo:bcube for one of its "
      "algorithms");
  command.add_option(kPointsFlag, result.points)->group("");  // not for people
  add_reproducibility(command, typed);
  add_form(command, result, typed);
  add_timing(command, result, typed);
}

void add_collective(CLI::App& app, const std::string& name, Collective collective,
                    Arguments& result, RawOptions& typed) {
  CLI::App* command = app.add_subcommand(name, describe(collective));
  if (const std::string other = long_command(name); !other.empty()) command->alias(other);
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_measurement(*command, collective, result, typed);
  add_sizes(*command, result, typed);
  add_type(*command, typed);
  add_operation(*command, typed);
  add_end_of_help(*command,
                  collective == Collective::kBarrier ? SizesOf::kBytes : SizesOf::kElements);
  if (has_servers(collective)) {
    command
        ->add_option("--servers", result.problem.servers,
                     "Dedicated servers, the first ranks; 0: every rank serves")
        ->capture_default_str();
  }
}

// The command `ps`, with the collectives of a parameter server as subcommands.
void add_servers(CLI::App& app, Arguments& result, RawOptions& typed) {
  CLI::App* command = app.add_subcommand("ps", "Measure a parameter server: push, pull, push-pull");
  command->require_subcommand(1);
  add_collective(*command, "push", Collective::kPush, result, typed);
  add_collective(*command, "pull", Collective::kPull, result, typed);
  add_collective(*command, "push-pull", Collective::kPushPull, result, typed);
}

// Options that this collective ignores. All collectives accept the same options, so that one
// command line works for all of them.
std::vector<std::string> unused_options(Collective collective) {
  if (collective == Collective::kBarrier)
    return {"--bytes", "--min-bytes", "--max-bytes",   "--factor",
            "--type",  "--op",        "--out-of-place"};
  if (collective == Collective::kBroadcast) return {"--op", "--out-of-place"};
  if (collective == Collective::kAllToAll) return {"--op", "--out-of-place"};
  return is_reduction(collective) ? std::vector<std::string>{} : std::vector<std::string>{"--op"};
}

// Names of other libraries and languages, for suggestions.
constexpr Synonym kTypesElsewhere[] = {
    {"float", "float32"}, {"fp32", "float32"}, {"double", "float64"}, {"fp64", "float64"},
    {"half", "float16"},  {"fp16", "float16"}, {"bf16", "bfloat16"},  {"fp8", "float8_e4m3"},
    {"int", "int32"},     {"long", "int64"},   {"byte", "uint8"}};
constexpr Synonym kOpsElsewhere[] = {{"mean", "average"}, {"avg", "average"},  {"add", "sum"},
                                     {"prod", "product"}, {"and", "bit_and"},  {"or", "bit_or"},
                                     {"xor", "bit_xor"},  {"band", "bit_and"}, {"bor", "bit_or"},
                                     {"bxor", "bit_xor"}};

void take_typed(const RawOptions& typed, Arguments& result) {
  result.segment_bytes = parse_size("--segment-bytes", typed.segment_bytes);
  require_seconds("--timeout", typed.timeout_s, kLongestTimeoutS);
  require_seconds("--seconds", result.seconds, kLongestTimeoutS);
  result.problem.type = by_name(typed.type, kElementTypes, "--type", kTypesElsewhere);
  result.problem.op = by_name(typed.op, kReduceOps, "--op", kOpsElsewhere);
  result.problem.is_in_place = !typed.is_out_of_place;
  result.is_memory_its_own = typed.is_memory_its_own;
  result.device = typed.device;
  result.reproducibility = by_name(typed.reproducibility, kReproducibilities, "--reproducibility");
  result.form = by_name(typed.form, kCallForms, "--form");
  result.is_checked = !typed.is_unchecked;
  result.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(typed.timeout_s * 1000));
}

// Resets the options that this collective ignores, and remembers the given ones for a note above
// the table.
void drop_unused(const CLI::App& command, Arguments& result) {
  const Collective collective = result.problem.collective;
  for (const std::string& name : unused_options(collective)) {
    if (command.count(name) > 0) result.without_meaning.push_back(name);
  }
  const Arguments defaults;
  if (!is_reduction(collective)) result.problem.op = defaults.problem.op;
  if (collective == Collective::kBroadcast) result.problem.is_in_place = true;
  if (collective == Collective::kAllToAll) result.problem.is_in_place = false;
  if (collective != Collective::kBarrier) return;
  result.problem = defaults.problem;
  result.problem.collective = collective;
  result.sizes = defaults.sizes;
  result.min_bytes = defaults.min_bytes;
  result.max_bytes = defaults.max_bytes;
  result.factor = defaults.factor;
}

// Under a launcher the number of ranks is the launcher's.
void take_launched(const CLI::App& command, int launched, Arguments& result) {
  if (launched == 0) return;
  require(command.count("--ranks") == 0 || result.ranks == launched,
          fmt::format("--ranks {} contradicts the launcher, which started {} (WORLD_SIZE); leave "
                      "--ranks out, or run kolo-bench without a launcher",
                      result.ranks, launched));
  result.ranks = launched;
}

// Throws for a transport that is neither in this build nor a path of a library.
void refuse_transport(const std::string& name, const std::string& command) {
  const bool takes_all = command != "explain" && command != "tune" && command != "topology";
  std::vector<std::string> names = {"auto"};
  for (const std::string_view known : transport_names()) names.emplace_back(known);
  if (takes_all) names.emplace_back("all");
  std::string why;
  if (name == "all") why = fmt::format("{} takes one at a time; ", command);
  if (name.find(',') != std::string::npos)
    why = takes_all ? "one at a time, or all of them in turn; " : "one at a time; ";
  throw std::invalid_argument(fmt::format(
      "--transport {}: {}expected one of {}, or the path of a library, with a slash: ./libx.so{}",
      name, why, fmt::join(names, ", "), did_you_mean(suggested_word(name, names))));
}

// Checks here what every rank would refuse: unreadable settings, unknown or unusable transports.
void take_transport(int launched, Arguments& result) {
  use_decorators(result);
  require_settings(result);
  const std::string& name = result.transport;
  const auto names = transport_names();
  const bool is_mixed = name.find('+') != std::string::npos;  // checked when it is resolved
  if (name != "auto" && !is_mixed && !is_from_outside(name) &&
      std::ranges::find(names, name) == names.end())
    refuse_transport(name, result.command);
  result.transport = resolve_transport(result.transport);
  if (launched == 0) require_usable(result.transport);  // else the launching process has checked it
  require(launched <= 1 || joins_processes(result.transport),
          fmt::format("--transport {}: it joins the threads of one process, and these ranks are "
                      "processes; run kolo-bench without a launcher",
                      result.transport));
}

// Refuses empty values: most often a shell variable that was never set.
void require_words(const CLI::App& command) {
  const auto is_empty = [&command](const char* flag) {
    const CLI::Option* option = command.get_option_no_throw(flag);
    return option != nullptr && option->count() > 0 && option->as<std::string>().empty();
  };
  require(!is_empty("--json"), "--json: expected a file, or - for standard output");
  require(!is_empty("--against"), "--against: expected a peer, as gloo");
  require(!is_empty("--device"), "--device: expected cuda");
  require(!is_empty("--bytes"), "--bytes: expected sizes, as 4K,1M");
  require(!is_empty("--only"), "--only: expected a part, as memory");
  require(!is_empty("--algorithm"), "--algorithm: expected a name; without it kolo chooses");
}

// --bytes excludes the options of a sweep.
void require_one_kind_of_sizes(const CLI::App& command) {
  const auto is_given = [&command](const char* flag) {
    const CLI::Option* option = command.get_option_no_throw(flag);
    return option != nullptr && option->count() > 0;
  };
  if (!is_given("--bytes")) return;
  for (const char* flag : {"--min-bytes", "--max-bytes", "--factor"})
    require(!is_given(flag), fmt::format("--bytes takes the place of {}; leave one out", flag));
}

void require_whole_elements(std::size_t bytes, ElementType type, const char* flag) {
  require(bytes == 0 || bytes >= element_bytes(type),
          fmt::format("{} {}: less than one element; {} has {} bytes", flag, bytes, to_string(type),
                      element_bytes(type)));
}

// Refuses an algorithm that every rank would refuse under --reproducibility invariant.
void require_order(const Arguments& arguments) {
  const Problem& problem = arguments.problem;
  if (arguments.reproducibility != Reproducibility::kInvariant || arguments.algorithm.empty() ||
      arguments.ranks <= 2 || !is_reduction(problem.collective) ||
      !depends_on_order(problem.type, problem.op)) {
    return;
  }
  std::vector<std::string_view> able;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == problem.collective && algorithm.is_rank_ordered)
      able.push_back(algorithm.name);
  }
  require(std::ranges::find(able, arguments.algorithm) != able.end(),
          fmt::format("--algorithm {}: does not combine in the order of ranks, which "
                      "--reproducibility invariant needs; these do: {}",
                      arguments.algorithm, fmt::join(able, ", ")));
}

// Refuses a KOLO_TUNING table that rank 0 could not read.
void require_tuning() {
  const std::string path = read_settings().tuning;
  if (path.empty()) return;
  try {
    TuningTable::read(path);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("KOLO_TUNING: {}", error.what()));
  }
}

void require_op(const Problem& problem) {
  require(is_defined(problem.type, problem.op),
          fmt::format("--op {}: it is for integers, not for {}", to_string(problem.op),
                      to_string(problem.type)));
  require(problem.op != ReduceOp::kAverage || (problem.collective != Collective::kScan &&
                                               problem.collective != Collective::kExclusiveScan),
          "--op average: not defined in a scan, since each rank's sum has a different number of "
          "terms");
}

void require_sense(const Arguments& arguments) {
  const Problem& problem = arguments.problem;
  require(arguments.ranks >= 1 && arguments.ranks <= 1024,
          fmt::format("--ranks {}: expected 1 to 1024", arguments.ranks));
  require_op(problem);
  require(
      problem.servers >= 0 && problem.servers < arguments.ranks,
      fmt::format("--servers {}: expected 0 or more, and at least one of the {} ranks must be a "
                  "worker",
                  problem.servers, arguments.ranks));
  require(arguments.passes >= 1 && arguments.passes <= 100,
          fmt::format("--passes {}: expected 1 to 100", arguments.passes));
  require(arguments.iterations >= 0,
          fmt::format("--iterations {}: expected 0 or more", arguments.iterations));
  const auto most = kMostIterations * static_cast<std::size_t>(arguments.passes);
  require(static_cast<std::size_t>(arguments.iterations) <= most,
          fmt::format("--iterations {}: at most {}, which is {} in each of {} passes; --passes "
                      "allows more",
                      arguments.iterations, most, kMostIterations, arguments.passes));
  require(arguments.warmup >= 0, fmt::format("--warmup {}: expected 0 or more", arguments.warmup));
  require(arguments.segment_bytes == 0 ||
              (arguments.segment_bytes >= kLeastSegment && arguments.segment_bytes <= kMostSegment),
          fmt::format("--segment-bytes {}: expected 0 (the default) or {} to {}",
                      arguments.segment_bytes, kLeastSegment, kMostSegment));
  require(arguments.device.empty() || arguments.device == "cuda",
          fmt::format("--device {}: expected cuda", arguments.device));
  require(arguments.device.empty() || (!arguments.is_memory_its_own && !arguments.is_overlapped),
          "--device cuda: buffers are the device's; leave --allocated and --overlap out");
  require(!arguments.is_captured || !arguments.device.empty(),
          "--captured needs calls on a device's stream; add --device cuda");
  require(!arguments.is_by_all || !arguments.is_captured,
          "--algorithm all measures kolo's algorithms only; leave --captured out");
  require(!arguments.is_by_all || arguments.against.empty(),
          "--algorithm all measures kolo's algorithms only; leave --against out");
  if (!arguments.algorithm.empty()) {
    require_name(arguments.algorithm, algorithm_names(problem.collective),
                 arguments.command + " --algorithm");
  }
  require(!arguments.is_overlapped || (arguments.against.empty() && !arguments.is_by_all),
          "--overlap measures kolo with one algorithm; leave --against and --algorithm all out");
  require(!arguments.is_profiled || !arguments.is_overlapped,
          "--profile measures an operation without a computation; leave --overlap out");
  require_order(arguments);
  require_tuning();
  for (const std::string& peer : arguments.against) {
    require_peer(peer, problem.collective);
    require(!arguments.device.empty() || !needs_device(peer),
            fmt::format("--against {}: it works on the memory of devices alone; add --device cuda",
                        peer));
    require(std::ranges::count(arguments.against, peer) == 1,
            fmt::format("--against: {} is named twice", peer));
  }
  require_whole_elements(arguments.max_bytes, problem.type, "--max-bytes");
  require_whole_elements(arguments.min_bytes, problem.type, "--min-bytes");
  sweep(arguments.min_bytes, arguments.max_bytes, arguments.factor, element_bytes(problem.type));
  require_exact({problem.type, problem.op, arguments.ranks - problem.servers, 0});
}

// Fills `against` and `no_peers`. A single unusable peer is refused. In a list, peers that cannot
// run here are left out and noted above the table.
void take_peers(const RawOptions& typed, Arguments& result) {
  if (typed.against.empty()) return;
  result.against = split_list("--against", typed.against);
  if (result.against.size() == 1) {
    const std::string_view why = why_no_peer(result.against.front());
    require(why.empty(), fmt::format("--against {}: {}", result.against.front(), why));
  }
  const bool may_need_device = result.against.size() == 1 || !result.device.empty();
  const auto can_be = [&](const std::string& peer) {
    return why_no_peer(peer).empty() && (may_need_device || !needs_device(peer));
  };
  const auto others = std::ranges::stable_partition(result.against, can_be);
  result.no_peers.assign(others.begin(), others.end());
  result.against.erase(others.begin(), others.end());
}

// Takes one transport, or all of them, each in a job of its own.
void take_transports(int launched, Arguments& result) {
  result.is_over_all = result.transport == "all";
  require(!result.is_over_all || launched == 0,
          "--transport all starts the ranks of each transport itself: run it without a launcher");
  if (!result.is_over_all) return take_transport(launched, result);
  use_decorators(result);
  require_settings(result);
}

void take_collective(const CLI::App& command, int launched, const RawOptions& typed,
                     Arguments& result) {
  result.problem.collective = collective_commands().at(result.command);
  take_typed(typed, result);
  take_sizes(typed, result);
  take_peers(typed, result);
  drop_unused(command, result);
  if (!result.points.empty()) result.json = result.points;
  result.is_by_all = result.algorithm == "all";
  if (result.is_by_all) result.algorithm.clear();
  if (result.is_overlapped && result.form == CallForm::kBlocking) result.form = CallForm::kAsync;
  take_launched(command, launched, result);
  take_transports(launched, result);
  require_sense(result);
}

void take_explain(const CLI::App& command, int launched, const RawOptions& typed,
                  Arguments& result) {
  take_explained(result);
  take_typed(typed, result);
  take_sizes(typed, result);
  drop_unused(command, result);
  take_explained_sizes(result);
  take_launched(command, launched, result);
  take_transport(launched, result);
  require_sense(result);
}

void take_topology(const CLI::App& command, int launched, const RawOptions& typed,
                   Arguments& result) {
  result.problem.collective = Collective::kMessage;
  take_typed(typed, result);
  take_launched(command, launched, result);
  take_transport(launched, result);
  require(result.ranks >= 2 && result.ranks <= 1024,
          fmt::format("--ranks {}: expected 2 to 1024", result.ranks));
}

void take_tune(const CLI::App& command, int launched, const RawOptions& typed, Arguments& result) {
  require(launched == 0 || !result.tune.points.empty(),
          "tune starts its ranks itself, as many as the grid has: run it without a launcher");
  take_typed(typed, result);
  take_sizes(typed, result);
  take_grid(typed, result);
  take_launched(command, launched, result);
  take_transport(launched, result);
  require_sense(result);
}

void take_p2p(int launched, const RawOptions& typed, Arguments& result) {
  require(launched == 0 || launched == 2,
          fmt::format("p2p needs 2 ranks, and the launcher started {}", launched));
  take_typed(typed, result);
  result.problem.type = ElementType::kUint8;  // a message is of bytes
  take_sizes(typed, result);
  result.problem.collective = Collective::kMessage;
  take_peers(typed, result);
  take_transports(launched, result);
  require_sense(result);
  take_p2p(typed, result);
}

}  // namespace

std::size_t granule_of(const Problem& problem, int ranks) {
  const std::size_t element = element_bytes(problem.type);
  return problem.collective == Collective::kAllToAll ? element * static_cast<std::size_t>(ranks)
                                                     : element;
}

std::vector<std::size_t> asked_sizes(const Arguments& arguments) {
  if (arguments.problem.collective == Collective::kBarrier) return {0};
  if (!arguments.sizes.empty()) return arguments.sizes;
  return steps(arguments.min_bytes, arguments.max_bytes, arguments.factor,
               granule_of(arguments.problem, arguments.ranks));
}

std::vector<std::size_t> sizes_of(const Arguments& arguments) {
  const std::size_t granule = granule_of(arguments.problem, arguments.ranks);
  if (arguments.problem.collective != Collective::kBarrier && arguments.sizes.empty())
    return sweep(arguments.min_bytes, arguments.max_bytes, arguments.factor, granule);
  std::vector<std::size_t> sizes = asked_sizes(arguments);
  for (std::size_t& bytes : sizes) bytes = whole(bytes, granule);
  return sizes;
}

bool parse_arguments(int argc, const char* const* argv, Arguments& result, int launched) {
  CLI::App app{kAbout, "kolo-bench"};
  app.formatter(std::make_shared<HelpFormat>());
  app.require_subcommand(1);
  app.footer(std::string(kMore) + "\n" + kDocuments);
  app.set_version_flag("--version", own_version(), "Print the version and end");
  RawOptions typed;
  for (const auto& entry : collective_commands())
    add_collective(app, entry.first, entry.second, result, typed);
  add_servers(app, result, typed);
  add_tools(app, result, typed);
  Arguments explained;
  Arguments tuned;
  RawOptions typed_of_explain;
  RawOptions typed_of_tune;
  Arguments paired;
  RawOptions typed_of_p2p;
  Arguments mapped;
  RawOptions typed_of_topology;
  add_explain(app, explained, typed_of_explain);
  add_tune(app, tuned, typed_of_tune);
  add_p2p(app, paired, typed_of_p2p);
  add_topology(app, mapped, typed_of_topology);
  require_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    app.exit(done);
    return false;
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(explain(error, app, argc, argv));
  }
  const CLI::App& first = *app.get_subcommands().front();
  const CLI::App& command = first.get_name() == "ps" ? *first.get_subcommands().front() : first;
  const std::string name = command.get_name() == "push-pull" ? "push_pull" : command.get_name();
  if (name == "explain") result = explained;
  if (name == "tune") result = tuned;
  if (name == "p2p") result = paired;
  if (name == "topology") result = mapped;
  result.command = name;
  require_words(command);
  require_one_kind_of_sizes(command);
  take_tools(typed, launched, result);
  if (name == "explain") take_explain(command, launched, typed_of_explain, result);
  if (name == "tune") take_tune(command, launched, typed_of_tune, result);
  if (name == "p2p") take_p2p(launched, typed_of_p2p, result);
  if (name == "topology") take_topology(command, launched, typed_of_topology, result);
  if (collective_commands().contains(name)) take_collective(command, launched, typed, result);
  return true;
}

}  // namespace kolo::bench
