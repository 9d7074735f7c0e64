#include "train/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "tensor/kernels/kernels.h"
#include "train/count_text.h"
#include "train/flag_parser.h"
#include "train/flag_values.h"
#include "train/loop/buckets.h"
#include "train/models/model.h"
#include "transports/base/suggestion.h"
#include "transports/decorators/shape.h"
#include "transports/launch/binding.h"
#include "transports/plugin/registration.h"
#include "transports/registry.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kMostEpochs = std::numeric_limits<int>::max();  // and iterations

// Values of the command line before they are interpreted.
struct Raw {
  Options options;
  std::string strategies;
  std::string reproducibility = "fast";
  ArmDefaults arm_defaults;
  std::string straggle;
  double timeout_s = 60;
  bool is_report_given = false;
  bool has_no_report = false;
  bool has_no_progress_thread = false;
};

[[noreturn]] void refuse(const std::string& message) { throw UsageError(message); }

std::vector<std::string> with_auto(const auto& names) {
  std::vector<std::string> words{"auto"};
  for (const auto& name : names) words.emplace_back(name);
  return words;
}

std::vector<std::string> names_between_processes() {
  std::vector<std::string> names;
  for (const std::string_view name : transport_names()) {
    if (joins_processes(name)) names.emplace_back(name);
  }
  return names;
}

constexpr std::array kReproducibilities{Reproducibility::kFast, Reproducibility::kOrdered,
                                        Reproducibility::kInvariant};

std::vector<std::string> reproducibility_names() {
  std::vector<std::string> names;
  for (const Reproducibility mode : kReproducibilities) names.emplace_back(to_string(mode));
  return names;
}

void add_comparison_flags(CLI::App& app, Raw& raw) {
  Options& o = raw.options;
  const std::string group = "Arms of the comparison";
  app.add_option(
         "--strategies,--strategy", raw.strategies,
         "arms, separated by commas: " + list_of_strategies() + " [compare: ring,ps; train: ring]")
      ->check(nonempty_text("arms, as ring,ps"))
      ->group(group);
  app.add_option("--ranks,--n_gpus,--n-gpus", o.ranks, "workers [2]")
      ->check(whole_number(1, 1024))
      ->group(group);
  app.add_option(
         "--ps-mode,--ps_mode", raw.arm_defaults.ps_mode,
         "placement of servers of 'ps' without words: dedicated, sharded, everywhere, split "
         "[dedicated]")
      ->group(group);
  app.add_option("--servers", raw.arm_defaults.servers,
                 "dedicated servers of 'ps' without words [1]")
      ->check(whole_number(1, 64))
      ->group(group);
  app.add_option("--ps-optimizer,--ps_optimizer", raw.arm_defaults.ps_optimizer,
                 "ranks that apply the optimizer of 'ps' without words: worker, server [worker]")
      ->group(group);
  app.add_option("--seeds", o.seeds, "repetitions with seeds S, S+1, ..., to show the spread [1]")
      ->check(whole_number(1, 1000))
      ->group(group);
}

void add_work_flags(CLI::App& app, Raw& raw) {
  Options& o = raw.options;
  const std::string group = "The work, the same for every arm";
  app.add_option("--dataset", o.dataset,
                 "digits (rendered), svhn:DIR (.mat files), mnist:DIR (IDX files) [digits]")
      ->check(known_dataset())
      ->group(group);
  app.add_option("--train-size,--train_size", o.train_size,
                 "training samples [digits: 4096; files: all]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--test-size,--test_size", o.test_size, "test samples [digits: 1000; files: all]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--model", o.model, fmt::format("{} [resnet50]", fmt::join(model_names(), ", ")))
      ->check(one_of("model", model_names()))
      ->group(group);
  app.add_option("--stem", o.stem, "resnet50's: imagenet, cifar [imagenet]")
      ->check(one_of("stem", {"imagenet", "cifar"}))
      ->group(group);
  app.add_option("--batch-size,--batch_size", o.batch_size, "samples per rank and iteration [64]")
      ->check(whole_number(1, 1 << 24))
      ->group(group);
  app.add_option("--global-batch,--global_batch", o.global_batch,
                 "samples of all ranks together per iteration, instead of --batch-size "
                 "[--ranks times --batch-size]")
      ->check(whole_number(1, 1 << 24))
      ->group(group);
  app.add_option("--epochs", o.epochs, "passes over the training data [8]")
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--steps", o.steps, "stop after this number of iterations; 0: whole epochs [0]")
      ->check(whole_number(0))
      ->group(group);
  app.add_option("--seed", o.seed, "seed of weights, data order and rendered data [1]")
      ->check(whole_number(0))
      ->group(group);
}

void add_optimizer_flags(CLI::App& app, Raw& raw) {
  Options& o = raw.options;
  const std::string group = "The optimizer (SGD with momentum), the same for every arm";
  app.add_option("--lr", o.lr, "learning rate at a global batch of 256, scaled linearly [0.01]")
      ->check(real_number(0, Least::excluded))
      ->group(group);
  app.add_option("--momentum", o.momentum, "[0.9]")
      ->check(real_number(0, Least::included, 1))
      ->group(group);
  app.add_option("--weight-decay,--weight_decay", o.weight_decay, "[1e-4]")
      ->check(real_number(0, Least::included))
      ->group(group);
  app.add_option("--warmup-epochs,--warmup_epochs", o.warmup_epochs,
                 "epochs in which the learning rate grows from near 0 [1]")
      ->check(real_number(0, Least::included, 1e6))
      ->group(group);
  app.add_option("--lr-schedule,--lr_schedule", o.lr_schedule, "constant, cosine [cosine]")
      ->check(one_of("lr-schedule", {"constant", "cosine"}))
      ->group(group);
}

void add_running_flags(CLI::App& app, Raw& raw) {
  Options& o = raw.options;
  const std::string group = "How it runs, the same for every arm";
  app.add_option("--transport", o.transport,
                 "auto, a transport of this build, two as shm+tcp, or a library (./libx.so) [auto]")
      ->check([](const std::string& name) {
        // Two joined by + are checked when the transport is resolved.
        if (is_from_outside(name) || name.find('+') != std::string::npos) return std::string();
        return one_of("transport", with_auto(transport_names()))(name);
      })
      ->group(group);
  app.add_option("--shape", o.shape,
                 "simulated network: 1Gbit,1ms; hosts:10Gbit,50us between hosts only [KOLO_SHAPE]")
      ->group(group);
  app.add_option("--backend", o.backend, "compute backend: auto, or one of this build [auto]")
      ->check(one_of("backend", with_auto(tensor::backend_names())))
      ->group(group);
  app.add_option("--threads", o.threads, "compute threads per worker; 0: cores / ranks [0]")
      ->check(whole_number(0, 4096))
      ->group(group);
  app.add_option("--bucket-bytes,--bucket_bytes", o.bucket_bytes,
                 fmt::format("gradients sent together [{}]", BucketSizes{}.bytes))
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--first-bucket-bytes,--first_bucket_bytes", o.first_bucket_bytes,
                 fmt::format("size of the first bucket of each iteration [{}, at most "
                             "--bucket-bytes]",
                             BucketSizes{}.first_bytes))
      ->check(whole_number(1))
      ->group(group);
  app.add_option("--reproducibility", raw.reproducibility,
                 "order of sums: fast, ordered, invariant (the same bits in all synchronous arms) "
                 "[fast]")
      ->check(one_of("reproducibility", reproducibility_names()))
      ->group(group);
  app.add_flag("--progress-thread", o.progress_thread,
               "make progress of communication in a separate thread [no]")
      ->group(group);
  app.add_flag("--no-progress-thread", raw.has_no_progress_thread,
               "make progress in the training thread (the default)")
      ->group(group);
  app.add_option("--straggle", raw.straggle,
                 "a worker that takes so much longer to compute: rank=1,factor=1.5 [none]")
      ->check([](const std::string& text) {
        try {
          parse_straggle(text);
          return std::string();
        } catch (const std::invalid_argument& error) {
          return std::string(error.what());
        }
      })
      ->group(group);
  app.add_option("--timeout", raw.timeout_s, "seconds to wait for another rank [60]")
      ->check(real_number(0, Least::excluded, 1e6))
      ->group(group);
}

void add_watching_flags(CLI::App& app, Raw& raw) {
  Options& o = raw.options;
  const std::string group = "Measurements and results";
  app.add_option("--eval-every,--eval_every", o.eval_every, "epochs between evaluations [1]")
      ->check(whole_number(1, kMostEpochs))
      ->group(group);
  app.add_option("--hash-every,--hash_every", o.hash_every,
                 "iterations between checks that the replicas are equal; 0: only at the end [20]")
      ->check(whole_number(0, kMostEpochs))
      ->group(group);
  app.add_option("--skip-steps,--skip_steps", o.skip_steps,
                 "iterations at the start that do not count for speeds [5]")
      ->check(whole_number(0, kMostEpochs))
      ->group(group);
  app.add_option("--report", o.report,
                 "folder for report.json, report.md and plots [compare: report]")
      ->check(nonempty_text("a folder; --no-report writes none"))
      ->group(group);
  app.add_flag("--no-report", raw.has_no_report, "no folder, only the table")->group(group);
  app.add_option("--events-fd", o.events_fd)->group("");  // not shown
  app.add_option("--turns-fd", o.turns_fd)->group("");
}

// Checks combinations of flags. Single flags are checked where they are declared.
void check_together(const Options& o) {
  if (o.global_batch > 0 && o.global_batch < o.ranks) {
    refuse(fmt::format(
        "--global-batch: {} samples are too few for {} ranks; give at least one per rank",
        o.global_batch, o.ranks));
  }
  if (o.straggle.rank >= o.ranks) {
    refuse(fmt::format("--straggle {}: the rank must be a worker, from 0 to {}", o.straggle.text(),
                       o.ranks - 1));
  }
}

constexpr int kUntilSteps = 1'000'000;  // epochs, if --steps is the limit

void fill_defaults(Options& o, bool is_report_given, bool has_no_report) {
  const bool is_rendered = o.dataset == "digits";
  if (o.train_size == 0 && is_rendered) o.train_size = 4096;
  if (o.test_size == 0 && is_rendered) o.test_size = 1000;
  if (o.batch_size == 0) o.batch_size = 64;
  if (o.epochs == 0) o.epochs = o.steps > 0 ? kUntilSteps : 8;
  if (o.lr == 0) o.lr = 0.01;
  if (o.bucket_bytes == 0) o.bucket_bytes = BucketSizes{}.bytes;
  if (o.first_bucket_bytes == 0) {
    o.first_bucket_bytes = std::min(BucketSizes{}.first_bytes, o.bucket_bytes);
  }
  if (o.backend == "auto") o.backend = tensor::backend_names().front();
  if (o.threads == 0) {
    const int sharing = launch::is_bound_by_parent() ? 1 : o.ranks;
    o.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / sharing);
  }
  if (o.command == Command::compare && !is_report_given) o.report = "report";
  if (has_no_report || o.events_fd >= 0) o.report.clear();  // the starting process writes it
}

Options finish(Raw& raw) {
  Options& o = raw.options;
  if (!raw.straggle.empty()) o.straggle = parse_straggle(raw.straggle);
  check_together(o);
  // Rounded up: 0 would mean the default.
  o.timeout = std::chrono::milliseconds(std::llround(std::ceil(raw.timeout_s * 1000)));
  if (raw.strategies.empty()) {
    raw.strategies = o.command == Command::compare ? "ring,ps" : "ring";
  }
  try {
    o.arms = parse_arms(raw.strategies, raw.arm_defaults);
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
  for (const Arm& arm : o.arms) {
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
                       raw.strategies, o.arms.size()));
  }
  for (const Reproducibility mode : kReproducibilities) {
    if (raw.reproducibility == to_string(mode)) o.reproducibility = mode;
  }
  fill_defaults(o, raw.is_report_given, raw.has_no_report);
  return o;
}

// Whether the arms would differ with the defaults `other`.
bool would_change(const Raw& raw, const ArmDefaults& other) {
  try {
    return parse_arms(raw.strategies, other) != raw.options.arms;
  } catch (const std::invalid_argument&) {  // they would be invalid
    return true;
  }
}

bool has_buckets(const Arm& arm) { return arm.sync == Sync::bucketed; }
bool has_equal_replicas(const Arm& arm) { return !arm.has_different_replicas(); }
// The other arms depend on the order in which gradients arrive at servers.
bool has_ordered_sums(const Arm& arm) { return !arm.is_served() || arm.difference().empty(); }

// Flags that only some arms use.
struct FlagOfArms {
  const char* name;
  bool (*is_used)(const Arm& arm);
};
constexpr std::array<FlagOfArms, 4> kFlagsOfArms{{
    {"--bucket-bytes", has_buckets},
    {"--first-bucket-bytes", has_buckets},
    {"--hash-every", has_equal_replicas},
    {"--reproducibility", has_ordered_sums},
}};

// Rejects flags that would be ignored. Called when the arms are known.
void refuse_unused(const CLI::App& app, const Raw& raw) {
  const Options& o = raw.options;
  if (raw.is_report_given && raw.has_no_report)
    refuse("--no-report cannot be combined with --report; remove one of them");
  if (app.count("--global-batch") > 0 && app.count("--batch-size") > 0)
    refuse("--global-batch cannot be combined with --batch-size; remove one of them");
  if (o.progress_thread && raw.has_no_progress_thread)
    refuse("--no-progress-thread cannot be combined with --progress-thread; remove one of them");
  if (app.count("--stem") > 0 && o.model != "resnet50")
    refuse(fmt::format("--model {} does not use --stem; remove it", o.model));
  std::vector<std::string> arms;
  for (const Arm& arm : o.arms) arms.push_back(arm.name());
  for (const FlagOfArms& flag : kFlagsOfArms) {
    if (app.count(flag.name) > 0 && std::ranges::none_of(o.arms, flag.is_used)) {
      refuse(fmt::format("{}: none of the arms ({}) uses it; remove it", flag.name,
                         fmt::join(arms, ", ")));
    }
  }
  ArmDefaults mode = raw.arm_defaults, servers = mode, optimizer = mode;
  mode.ps_mode = mode.ps_mode == "everywhere" ? "dedicated" : "everywhere";
  servers.servers = std::max(servers.servers, 2) + 1;
  optimizer.ps_optimizer = optimizer.ps_optimizer == "server" ? "worker" : "server";
  for (const auto& [flag, other] :
       {std::pair{"--ps-mode", mode}, {"--servers", servers}, {"--ps-optimizer", optimizer}}) {
    if (app.count(flag) == 0 || would_change(raw, other)) continue;
    refuse(
        fmt::format("{}: none of the arms ({}) uses it; remove it", flag, fmt::join(arms, ", ")));
  }
}

constexpr const char* kUsage =
    "usage: kolo-train compare [flags]   trains with each strategy in turn, and compares them\n"
    "       kolo-train train [flags]     trains with one\n"
    "       kolo-train crossover [flags] measures from how many servers on they beat a ring\n"
    "       kolo-train COMMAND --help    the flags\n";

Command parse_command(const std::string& word) {
  if (word == "train") return Command::train;
  if (word == "compare") return Command::compare;
  const std::vector<std::string> known{"train", "compare", "crossover"};
  refuse(fmt::format("unknown command '{}'; expected one of train, compare, crossover{}", word,
                     did_you_mean(suggested_word(word, known))));
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments) {
  ParsedOptions parsed;
  if (arguments.empty())
    refuse(
        "a command is missing; expected one of train, compare, crossover; see kolo-train --help");
  if (arguments[0] == "--help" || arguments[0] == "-h") {
    parsed.text = kUsage;
    parsed.is_text = true;
    return parsed;
  }
  if (arguments[0] == "--version") {
    parsed.text = "kolo " KOLO_VERSION "\n";
    parsed.is_text = true;
    return parsed;
  }
  Raw raw;
  raw.options.command = parse_command(arguments[0]);
  CLI::App app("Data-parallel training with a ring or a parameter server",
               "kolo-train " + arguments[0]);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_comparison_flags(app, raw);
  add_work_flags(app, raw);
  add_optimizer_flags(app, raw);
  add_running_flags(app, raw);
  add_watching_flags(app, raw);
  parsed.text = parse_flags(app, arguments);
  parsed.is_text = !parsed.text.empty();
  if (parsed.is_text) return parsed;
  raw.is_report_given = app.count("--report") > 0;
  parsed.options = finish(raw);
  // A started rank gets one arm, but also the flags for other arms.
  if (raw.options.events_fd < 0) refuse_unused(app, raw);
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
