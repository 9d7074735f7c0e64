#include "train/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "tensor/kernels/kernels.h"
#include "train/count_text.h"
#include "train/flags/flag_parser.h"
#include "train/flags/training_flags.h"
#include "train/loop/buckets.h"
#include "train/optimizers/optimizer.h"
#include "transports/base/suggestion.h"
#include "transports/decorators/shape.h"
#include "transports/launch/binding.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw UsageError(message); }

std::vector<std::string> names_between_processes() {
  std::vector<std::string> names;
  for (const std::string_view name : transport_names()) {
    if (joins_processes(name)) names.emplace_back(name);
  }
  return names;
}

// Checks combinations of flags. Single flags are checked where they are declared.
void check_together(const Options& o) {
  if (o.global_batch > 0 && o.global_batch < o.ranks) {
    refuse(fmt::format(
        "--global-batch: {} samples are too few for {} ranks; give at least one per rank",
        o.global_batch, o.ranks));
  }
  if (o.has_nesterov && o.momentum == 0) refuse("--nesterov needs a --momentum above 0");
  if (o.straggle.rank >= o.ranks) {
    refuse(fmt::format("--straggle {}: the rank must be a worker, from 0 to {}", o.straggle.text(),
                       o.ranks - 1));
  }
}

void require_precision(const Options& o) {
  if (o.precision == "float32") return;
  try {
    tensor::make_backend(o.backend, 1, tensor::precision_from(o.precision));
  } catch (const std::invalid_argument& error) {
    refuse(fmt::format("--precision {}: {}", o.precision, error.what()));
  }
}

constexpr int kUntilSteps = 1'000'000;  // epochs, if --steps is the limit

void fill_defaults(Options& o, bool is_versus, bool is_report_given, bool has_no_report) {
  const bool is_rendered = o.dataset == "digits" || o.dataset.starts_with("synthetic");
  if (o.train_size == 0 && is_rendered) o.train_size = 4096;
  if (o.test_size == 0 && is_rendered) o.test_size = 1000;
  if (o.batch_size == 0) o.batch_size = 64;
  if (o.epochs == 0) o.epochs = o.steps > 0 ? kUntilSteps : 8;
  const OptimizerKind optimizer = optimizer_from(o.optimizer);
  if (o.lr == 0)
    o.lr = optimizer == OptimizerKind::adamw ? 0.001 : optimizer == OptimizerKind::lars ? 1 : 0.01;
  if (o.weight_decay < 0) o.weight_decay = optimizer == OptimizerKind::adamw ? 0.01 : 1e-4;
  if (o.bucket_bytes == 0) o.bucket_bytes = BucketSizes{}.bytes;
  if (o.first_bucket_bytes == 0) {
    o.first_bucket_bytes = std::min(BucketSizes{}.first_bytes, o.bucket_bytes);
  }
  if (o.backend == "auto") o.backend = tensor::backend_names().front();
  require_precision(o);
  if (o.threads == 0) {
    const int sharing = launch::is_bound_by_parent() ? 1 : o.ranks;
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / sharing);
  }
  if (o.command == Command::compare && !is_report_given)
    o.report = is_versus ? "report-versus" : "report";
  if (has_no_report || o.events_fd >= 0) o.report.clear();  // the starting process writes it
}

Options finish(TypedFlags& typed) {
  Options& o = typed.options;
  if (!typed.straggle.empty()) o.straggle = parse_straggle(typed.straggle);
  take_from_checkpoint(typed);
  check_together(o);
  // Rounded up: 0 would mean the default.
  o.timeout = std::chrono::milliseconds(std::llround(std::ceil(typed.timeout_s * 1000)));
  if (typed.strategies.empty()) {
    typed.strategies = o.command == Command::train ? "ring"
                       : typed.is_versus           ? "ring,ps,torch-ddp,torch-ps"
                                                   : "ring,ps";
  }
  try {
    o.arms = parse_arms(typed.strategies, typed.arm_defaults);
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  for (const Arm& arm : o.arms) {
    if (needs_whole_layers(optimizer_from(o.optimizer)) && arm.update_at != UpdateAt::worker &&
        !arm.is_torch()) {
      const bool is_shard = arm.update_at == UpdateAt::shard;
      refuse(
          fmt::format("--optimizer {}: it needs whole layers, and a {} of '{}' has parts of "
                      "them; take sgd or adamw{}",
                      o.optimizer, is_shard ? "worker" : "server", arm.name(),
                      is_shard ? "" : ", or optimizer=worker"));
    }
    if (arm.placement == ServerPlacement::split && o.ranks < kFewestWorkersOfSplit) {
      refuse(
          fmt::format("--strategies: '{}': split needs at least {} workers, not {}; raise "
                      "--ranks",
                      arm.name(), kFewestWorkersOfSplit, o.ranks));
    }
    if (arm.rule.kind != Consistency::Kind::kBackup || arm.rule.bound < o.ranks) continue;
    refuse(
        fmt::format("--strategies: '{}': at least one of the {} must count; lower backup, or "
                    "raise --ranks",
                    arm.name(), count_text(o.ranks, "worker")));
  }
  if (o.command == Command::train && o.arms.size() > 1) {
    refuse(fmt::format("train runs one arm, and --strategies '{}' has {}; use compare",
                       typed.strategies, o.arms.size()));
  }
  set_format(o.gradients, typed.compress);
  for (const Reproducibility mode : kReproducibilities) {
    if (typed.reproducibility == to_string(mode)) o.reproducibility = mode;
  }
  fill_defaults(o, typed.is_versus, typed.is_report_given, typed.has_no_report);
  check_gradient_flags(o);
  return o;
}

struct CommandHelp {
  std::string_view usage;  // the name, then its arguments
  std::string_view effect;

  std::string_view name() const { return usage.substr(0, usage.find(' ')); }
};
constexpr CommandHelp kCommands[] = {
    {"compare [flags]", "trains with each strategy in turn, and compares them"},
    {"train [flags]", "trains with one"},
    {"versus [flags]", "trains with ring, ps and PyTorch, and compares them"},
    {"crossover [flags]", "measures from how many servers on they beat a ring"},
    {"sweep [flags]", "measures speed and memory by batch size"},
    {"scale [flags]", "measures throughput by number of workers"},
    {"scale-data [flags]", "measures the time of an epoch by amount of data"},
    {"ladder [flags]", "measures all rungs of sync="},
    {"report RUN...", "gathers reports into one HTML page"},
    {"evaluate [flags]", "the accuracy of a saved model"},
    {"predict [flags] IMAGE...", "the classes of images"},
    {"fetch DATASET DIR", "downloads a data set"},
};

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandHelp& command : kCommands) names.emplace_back(command.name());
  return names;
}

std::string usage() {
  std::string text = "usage:\n";
  for (const CommandHelp& command : kCommands)
    text += fmt::format("  kolo-train {:<25} {}\n", command.usage, command.effect);
  return text + fmt::format("  kolo-train {:<25} {}\n", "COMMAND --help", "the flags");
}

// The points of an experiment are comparisons.
Command parse_command(const std::string& word) {
  if (word == "train") return Command::train;
  for (const std::string_view comparison :
       {"compare", "versus", "sweep", "scale", "scale-data", "ladder"}) {
    if (word == comparison) return Command::compare;
  }
  const std::vector<std::string> names = command_names();
  refuse(fmt::format("unknown command '{}'; expected one of {}{}", word, fmt::join(names, ", "),
                     did_you_mean(suggested_word(word, names))));
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments) {
  ParsedOptions parsed;
  parsed.arguments = arguments;
  if (arguments.empty())
    refuse(fmt::format("a command is missing; expected one of {}; see kolo-train --help",
                       fmt::join(command_names(), ", ")));
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    parsed.text = usage();
    parsed.is_text = true;
    return parsed;
  }
  if (arguments[0] == "--version") {
    parsed.text = "kolo " KOLO_VERSION "\n";
    parsed.is_text = true;
    return parsed;
  }
  TypedFlags typed;
  typed.options.command = parse_command(arguments[0]);
  typed.is_versus = arguments[0] == "versus";
  CLI::App app("Data-parallel training with a ring or a parameter server",
               "kolo-train " + arguments[0]);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_comparison_flags(app, typed);
  add_work_flags(app, typed);
  add_optimizer_flags(app, typed);
  add_gradient_flags(app, typed);
  add_running_flags(app, typed);
  add_result_flags(app, typed);
  add_checkpoint_flags(app, typed);
  add_config_flag(app);
  parsed.arguments = with_config_flags(app, arguments, OtherKeys::refused);
  parsed.text = parse_flags(app, parsed.arguments);
  parsed.is_text = !parsed.text.empty();
  if (parsed.is_text) return parsed;
  typed.is_report_given = app.count("--report") > 0;
  typed.is_batch_given = app.count("--batch-size") + app.count("--global-batch") > 0;
  typed.is_seed_given = app.count("--seed") > 0;
  parsed.options = finish(typed);
  // A started rank gets one arm, but also the flags for other arms.
  if (typed.options.events_fd < 0) refuse_unused_flags(app, typed);
  return parsed;
}

// Checks and sets the shape. Ranks in its rules are checked later, when the number of ranks is
// known.
void use_shape(const std::string& shape) {
  try {
    parse_shape(shape);
  } catch (const std::invalid_argument& error) {
    refuse(fmt::format("--shape {}: {}", shape, error.what()));
  }
  set_setting("KOLO_SHAPE", shape);
}

void check_transport(const Options& options) {
  try {
    if (!options.shape.empty()) use_shape(options.shape);
    const std::string name = resolve_transport(options.transport);
    if (const std::string why = why_unusable(name); !why.empty())
      refuse(fmt::format("--transport {}: cannot be used here: {}; auto takes one that can", name,
                         why));
    if (joins_processes(name)) return;
    refuse(
        fmt::format("--transport {}: it connects threads of one process, but kolo-train's ranks "
                    "are processes; expected one of {}",
                    name, fmt::join(names_between_processes(), ", ")));
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
}

std::vector<std::string> arguments_of_rank(const std::vector<std::string>& given, const Arm& arm,
                                           std::uint64_t seed, int events_fd, int turns_fd) {
  std::vector<std::string> arguments{"train"};
  arguments.insert(arguments.end(), given.begin() + 1, given.end());
  // The last value of a flag counts, so these override the given ones. The words of an arm override
  // --ps-mode and the like.
  for (const std::string& word :
       {"--strategies=" + arm.full_name(), fmt::format("--seed={}", seed), std::string("--seeds=1"),
        fmt::format("--events-fd={}", events_fd), fmt::format("--turns-fd={}", turns_fd)}) {
    arguments.push_back(word);
  }
  return arguments;
}

}  // namespace kolo::train
