#include "train/flags/training_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "train/models/model.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw UsageError(message); }

// Whether the arms would differ with the defaults `other`.
bool would_change(const TypedFlags& typed, const ArmDefaults& other) {
  try {
    return parse_arms(typed.strategies, other) != typed.options.arms;
  } catch (const std::invalid_argument&) {  // they would be invalid
    return true;
  }
}

bool is_torch(const Arm& arm) { return arm.is_torch(); }
bool has_buckets(const Arm& arm) { return arm.sync == Sync::bucketed && !arm.is_torch(); }
bool is_kolo(const Arm& arm) { return !arm.is_torch(); }
bool has_equal_replicas(const Arm& arm) { return !arm.has_different_replicas() && is_kolo(arm); }
// The other arms depend on the order in which gradients arrive at servers.
bool has_ordered_sums(const Arm& arm) {
  return is_kolo(arm) && (!arm.is_served() || arm.difference().empty());
}

constexpr std::array<std::string_view, 3> kDigits{"digits", "svhn", "mnist"};

// A flag that only some values of another one use.
struct DependentFlag {
  const char* name;
  std::vector<std::string_view> users;
};

void refuse_for_other_value(const CLI::App& app, const char* flag, const std::string& value,
                            const std::vector<DependentFlag>& dependents) {
  for (const DependentFlag& one : dependents) {
    if (app.count(one.name) == 0 || std::ranges::find(one.users, value) != one.users.end())
      continue;
    refuse(fmt::format("{} {} does not use {}; remove it", flag, value, one.name));
  }
}

// Flags that only some arms use.
struct FlagOfArms {
  const char* name;
  bool (*is_used)(const Arm& arm);
};
constexpr std::array<FlagOfArms, 9> kFlagsOfArms{{
    {"--bucket-bytes", has_buckets},
    {"--first-bucket-bytes", has_buckets},
    {"--hash-every", has_equal_replicas},
    {"--reproducibility", has_ordered_sums},
    {"--python", is_torch},
    {"--transport", is_kolo},
    {"--backend", is_kolo},
    {"--loader-threads", is_kolo},
    {"--progress-thread", is_kolo},
}};

// Refuses flags that PyTorch's arms do not implement.
void refuse_for_torch(const Options& o) {
  const auto arm = std::ranges::find_if(o.arms, &Arm::is_torch);
  if (arm == o.arms.end()) return;
  const std::string name = arm->name();
  if (o.command == Command::train)
    refuse(fmt::format("--strategies: train runs an arm of kolo, not {}; use compare", name));
  const std::array<std::pair<const char*, bool>, 13> others{
      {{"--augment", o.augment != "none"},
       {"--precision", o.precision != "float32"},
       {"--optimizer lars", o.optimizer == "lars"},
       {"--shape", !o.shape.empty() || !read_settings().shape.empty()},
       {"--straggle", o.straggle.is_set()},
       {"--profile", o.has_profile},
       {"--timeline", o.has_timeline},
       {"--micro-batch", o.micro_batch > 0},
       {"--compress", o.gradients.format != GradientFormat::float32},
       {"--clip-norm", o.gradients.clip_norm > 0},
       {"--sync-batch-norm", o.has_sync_batch_norm},
       {"--save", !o.save.empty()},
       {"--resume", !o.resume.empty()}}};
  for (const auto& [flag, is_set] : others) {
    if (is_set)
      refuse(fmt::format(
          "--strategies: {} trains in PyTorch, where {} has no effect; remove one of them", name,
          flag));
  }
}

}  // namespace

void refuse_unused_flags(const CLI::App& app, const TypedFlags& typed) {
  const Options& o = typed.options;
  refuse_for_torch(o);
  if (typed.is_report_given && typed.has_no_report)
    refuse("--no-report cannot be combined with --report; remove one of them");
  if (o.has_timeline && o.report.empty() && o.events_fd < 0)
    refuse("--timeline has no effect without a folder for its file; add --report FOLDER");
  if (app.count("--global-batch") > 0 && app.count("--batch-size") > 0)
    refuse("--global-batch cannot be combined with --batch-size; remove one of them");
  if (!o.load.empty() && !o.resume.empty())
    refuse("--load cannot be combined with --resume, which has the weights; remove one of them");
  if ((!o.save.empty() || !o.resume.empty()) && o.seeds > 1)
    refuse("--save and --resume are for one training; remove --seeds");
  for (const char* const flag : {"--save-every", "--keep"}) {
    if (o.command == Command::train && app.count(flag) > 0 && o.save.empty())
      refuse(fmt::format("{} has no effect without --save; remove it", flag));
  }
  if (o.progress_thread && typed.has_no_progress_thread)
    refuse("--no-progress-thread cannot be combined with --progress-thread; remove one of them");
  if (o.has_sync_batch_norm && !has_batch_norm(o.model))
    refuse(fmt::format("--model {} has no batch normalisation; remove --sync-batch-norm", o.model));
  if (app.count("--stem") > 0 && !has_stem(o.model))
    refuse(fmt::format("--model {} does not use --stem; remove it", o.model));
  const std::string dataset = o.dataset.substr(0, o.dataset.find(':'));
  refuse_for_other_value(app, "--dataset", dataset, {{"--image-size", {"imagefolder"}}});
  if (o.augment == "crop,flip" && std::ranges::find(kDigits, dataset) != kDigits.end()) {
    refuse(
        fmt::format("--augment crop,flip: mirrored digits are no digits, and {} has digits; "
                    "take crop",
                    dataset));
  }
  refuse_for_other_value(app, "--optimizer", o.optimizer,
                         {{"--momentum", {"sgd", "lars"}}, {"--nesterov", {"sgd"}}});
  refuse_for_other_value(app, "--lr-schedule", o.lr_schedule,
                         {{"--lr-step-epochs", {"step"}},
                          {"--lr-step-factor", {"step"}},
                          {"--lr-power", {"polynomial"}}});
  std::vector<std::string> arms;
  for (const Arm& arm : o.arms) arms.push_back(arm.name());
  for (const FlagOfArms& flag : kFlagsOfArms) {
    if (app.count(flag.name) > 0 && std::ranges::none_of(o.arms, flag.is_used)) {
      refuse(fmt::format("{}: none of the arms ({}) uses it; remove it", flag.name,
                         fmt::join(arms, ", ")));
    }
  }
  ArmDefaults mode = typed.arm_defaults, servers = mode, optimizer = mode;
  mode.ps_mode = mode.ps_mode == "everywhere" ? "dedicated" : "everywhere";
  servers.servers = std::max(servers.servers, 2) + 1;
  optimizer.ps_optimizer = optimizer.ps_optimizer == "server" ? "worker" : "server";
  for (const auto& [flag, other] :
       {std::pair{"--ps-mode", mode}, {"--servers", servers}, {"--ps-optimizer", optimizer}}) {
    if (app.count(flag) == 0 || would_change(typed, other)) continue;
    refuse(
        fmt::format("{}: none of the arms ({}) uses it; remove it", flag, fmt::join(arms, ", ")));
  }
}

}  // namespace kolo::train
