#include "train/checkpoint/saved_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/gradient_state.h"
#include "train/checkpoint/optimizer_state.h"
#include "train/checkpoint/stage_tensors.h"
#include "train/report/machine_info.h"
#include "train/report/manifest.h"
#include "train/report/report.h"

namespace kolo::train {
namespace {

// `workers`: those that exchange gradients.
void write(const TrainingSetup& setup, Strategy& strategy, int workers,
           std::span<const TensorSource> tensors, std::int64_t iteration) {
  const Options& o = setup.options();
  RunFacts facts = facts_of(o, *setup.train_data());
  facts["kolo"] = machine_info()["kolo"];
  facts["epoch"] = fmt::format("{}", iteration / setup.train_plan().iterations_per_epoch());
  facts["iterations_of_run"] = fmt::format("{}", setup.iterations());
  if (const GradientUpdate* const update = strategy.gradient_update())
    add_loss_scale(facts, *update);
  if (!strategy.unsent().empty()) add_unsent_workers(facts, workers);
  try {
    std::error_code ignored;  // the file says why it cannot be written
    std::filesystem::create_directories(o.save, ignored);
    write_checkpoint(checkpoint_name(o.save, iteration), facts, iteration, tensors);
  } catch (const CheckpointError& error) {
    const auto earlier = checkpoints_in(o.save);
    throw CheckpointError(
        fmt::format("--save: {}; {}", error.what(),
                    earlier.empty() ? "there is no earlier checkpoint"
                                    : "the last good checkpoint is " + earlier.rbegin()->second));
  }
  const std::string refusal = try_to_write(o.save, "manifest.json", manifest_json(o, ""));
  if (!refusal.empty())
    throw CheckpointError(fmt::format("--save: {}: manifest.json: {}", o.save, refusal));
  prune_checkpoints(o.save, o.keep);
}

// Collective. Appends the names of the file's unsent gradients to `names`. Only rank 0 has the
// file.
void add_unsent(Communicator& communicator, const std::optional<SafetensorsFile>& file,
                const tensor::Parameters& parameters, const PipelinePlace& place,
                std::vector<std::string>& names) {
  std::int32_t workers = 0;
  if (file) {
    const std::vector<std::string> states = states_in(*file, parameters);
    while (std::ranges::find(states, unsent_name(workers)) != states.end()) ++workers;
  }
  communicator.broadcast(std::span<std::int32_t>(&workers, 1));
  if (place.replica > 0) return;  // distribute_unsent() gives them to the other replicas
  for (int worker = 0; worker < workers; ++worker) names.push_back(unsent_name(worker));
}

}  // namespace

void save_checkpoint(const SavedRanks& ranks, TrainingSetup& setup, Strategy& strategy,
                     std::span<Optimizer* const> optimizers, std::int64_t iteration) {
  Communicator& communicator = ranks.all;
  tensor::Parameters& parameters = setup.network().parameters();
  ArenaState state =
      collect_state(communicator, setup.arm(), setup.options().ranks, setup.optimizer_settings(),
                    optimizers, parameters.values().size());
  if (!strategy.unsent().empty()) collect_unsent(ranks.exchanging, strategy.unsent(), state);
  if (setup.place().replica != 0 || (setup.rank() != 0 && setup.place().stages == 1)) return;
  std::vector<TensorSource> tensors = tensors_of(parameters, state);
  if (setup.place().stages > 1)
    tensors = collect_tensors(communicator, setup.place(), std::move(tensors));
  if (setup.rank() == 0) write(setup, strategy, ranks.exchanging.size(), tensors, iteration);
}

void restore_state(const SavedRanks& ranks, TrainingSetup& setup, Strategy& strategy,
                   std::span<Optimizer* const> optimizers) {
  Communicator& communicator = ranks.all;
  tensor::Parameters& parameters = setup.network().parameters();
  const OptimizerSettings settings = setup.optimizer_settings();
  ArenaState state;
  try {
    std::optional<SafetensorsFile> file;
    if (setup.rank() == 0) file.emplace(checkpoint_at(setup.options().resume));
    if (setup.place().stages > 1) {
      std::vector<std::string> names = states_of(settings);
      if (!strategy.unsent().empty())
        add_unsent(communicator, file, parameters, setup.place(), names);
      read_for_all(communicator, file ? &*file : nullptr,
                   [&](const TensorReader& read) { state = read_state(read, names, parameters); });
      set_state(settings, optimizers, state);
    } else {
      if (file) state = read_state(reader_of(*file), states_in(*file, parameters), parameters);
      distribute_state(communicator, setup.arm(), setup.options().ranks, settings, optimizers,
                       parameters.values().size(), state);
    }
    if (!strategy.unsent().empty()) distribute_unsent(ranks.exchanging, state, strategy.unsent());
    if (GradientUpdate* const update = strategy.gradient_update())
      restore_loss_scale(communicator, file ? &*file : nullptr, *update);
  } catch (const CheckpointError& error) {
    throw DataError(fmt::format("--resume: {}", error.what()));
  }
}

}  // namespace kolo::train
