// Flags of gradients, and the arms that can use them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>

#include "train/count_text.h"
#include "train/flags/flag_values.h"
#include "train/flags/training_flags.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kMostSamples = 1 << 24;

[[noreturn]] void refuse(const std::string& message) { throw UsageError(message); }

bool has_format(const Options& o, GradientFormat format) { return o.gradients.format == format; }

// Why `arm` cannot send gradients in another format than float32; empty: it can.
std::string why_no_format(const Arm& arm, const Options& o) {
  if (arm.local_steps > 0) return "sends parameters, no gradients";
  if (arm.stages == o.ranks) return "has one replica of the model, so it sends no gradients";
  if (arm.is_served()) return "applies gradients at its servers, in float32";
  if (arm.placement != ServerPlacement::none && arm.update_at == UpdateAt::server)
    return "gets parameters from its servers; take optimizer=worker";
  if (!has_format(o, GradientFormat::top_k)) return "";
  const bool gathers = arm.strategy == "ring" || arm.strategy == "auto" || arm.stages > 0;
  if (!gathers) return "has no sparse exchange; ring, auto and pipelines have one";
  return arm.sync == Sync::fusion ? "copies gradients into dense buffers" : "";
}

// Why `arm` cannot wait for all sums before it updates the first parameter; empty: it can.
std::string why_no_wait_for_all(const Arm& arm, const Options&) {
  if (arm.local_steps > 0) return "applies each worker's own gradients";
  if (arm.is_served()) return "updates each part at its server, before the others";
  if (arm.placement != ServerPlacement::none && arm.update_at == UpdateAt::server)
    return "updates each part at its server as its sum arrives; take optimizer=worker";
  if (arm.sync == Sync::prioritized) return "updates each layer as its sum arrives";
  return "";
}

// Why the workers of `arm` cannot make the same passes at the same time; empty: they can.
std::string why_no_equal_passes(const Arm& arm, const Options&) {
  if (arm.has_different_replicas()) return "lets the parameters of workers differ";
  if (arm.sync == Sync::prioritized) return "waits for gradients inside forward";
  return "";
}

struct GradientFlag {
  const char* name;
  bool (*is_set)(const Options& o);
  std::string (*why_not)(const Arm& arm, const Options& o);
};
constexpr std::array<GradientFlag, 4> kFlags{{
    {"--compress", [](const Options& o) { return !has_format(o, GradientFormat::float32); },
     why_no_format},
    {"--compress float16", [](const Options& o) { return has_format(o, GradientFormat::float16); },
     why_no_wait_for_all},
    {"--clip-norm", [](const Options& o) { return o.gradients.clip_norm > 0; },
     why_no_wait_for_all},
    {"--sync-batch-norm", [](const Options& o) { return o.has_sync_batch_norm; },
     why_no_equal_passes},
}};

// The share of each worker, or of each replica of a pipeline, must be a multiple of --micro-batch.
void require_whole_micro_batches(const Arm& arm, const Options& o) {
  if (o.micro_batch == 0) return;
  const std::int64_t all = o.samples_per_iteration();
  const int replicas = o.ranks / std::max(1, arm.stages);
  if (all % (o.micro_batch * replicas) == 0) return;
  refuse(
      fmt::format("--micro-batch {}: {} cannot be divided into micro-batches of that size for {} "
                  "of '{}'; change --micro-batch or --{}",
                  o.micro_batch, count_text(all, "sample"),
                  count_text(replicas, arm.stages > 0 ? "pipeline" : "worker"), arm.name(),
                  o.global_batch > 0 ? "global-batch" : "batch-size"));
}

void require_pipeline(const Arm& arm, const Options& o) {
  if (arm.stages == 0) return;
  if (o.ranks % arm.stages != 0) {
    refuse(
        fmt::format("--strategies: '{}': {} cannot be divided into pipelines of {} stages; set "
                    "--ranks to a multiple of {}",
                    arm.name(), count_text(o.ranks, "worker"), arm.stages, arm.stages));
  }
  if (o.micro_batch == 0) {
    const std::int64_t share = o.samples_per_iteration() / o.ranks;
    std::int64_t suggested = std::max<std::int64_t>(1, share / 4);
    while (share % suggested != 0) --suggested;  // one that require_whole_micro_batches accepts
    refuse(
        fmt::format("--strategies: '{}' needs micro-batches, about 4 times as many as stages; add "
                    "--micro-batch {}",
                    arm.name(), suggested));
  }
}

}  // namespace

void add_gradient_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "Gradients, the same for every arm";
  app.add_option("--micro-batch,--micro_batch", o.micro_batch,
                 "samples that a worker computes at a time; their gradients are summed, and sent "
                 "after the last of them [all]")
      ->check(whole_number(1, kMostSamples))
      ->group(group);
  app.add_option("--compress", typed.compress,
                 "how gradients are sent: none, bfloat16, float16, topk:R (only a fraction R of "
                 "the elements, such as topk:0.01) [none]")
      ->check([](const std::string& text) {
        try {
          GradientOptions ignored;
          set_format(ignored, text);
          return std::string();
        } catch (const std::invalid_argument& error) {
          return std::string(error.what());
        }
      })
      ->group(group);
  app.add_option("--clip-norm,--clip_norm", o.gradients.clip_norm,
                 "largest Euclidean norm of all gradients together [no limit]")
      ->check(real_number(0, Least::excluded))
      ->group(group);
  app.add_flag("--sync-batch-norm,--sync_batch_norm", o.has_sync_batch_norm,
               "batch normalisation over the samples of all workers [each worker's own]")
      ->group(group);
}

void check_gradient_flags(const Options& o) {
  for (const Arm& arm : o.arms) {
    require_pipeline(arm, o);
    require_whole_micro_batches(arm, o);
  }
  for (const Arm& arm : o.arms) {
    for (const GradientFlag& flag : kFlags) {
      if (!flag.is_set(o) || arm.is_torch()) continue;  // see refuse_for_torch
      const std::string why = flag.why_not(arm, o);
      if (!why.empty())
        refuse(fmt::format("{}: the arm '{}' cannot use this option, because it {}", flag.name,
                           arm.name(), why));
    }
  }
}

}  // namespace kolo::train
