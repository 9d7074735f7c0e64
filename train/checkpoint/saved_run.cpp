#include "train/checkpoint/saved_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/optimizer_state.h"
#include "train/report/machine_info.h"
#include "train/report/manifest.h"
#include "train/report/report.h"

namespace kolo::train {
namespace {

void write(const TrainingSetup& setup, tensor::Parameters& parameters, const ArenaState& state,
           std::int64_t iteration) {
  const Options& o = setup.options();
  RunFacts facts = facts_of(o, *setup.train_data());
  facts["kolo"] = machine_info()["kolo"];
  facts["epoch"] = fmt::format("{}", iteration / setup.train_plan().iterations_per_epoch());
  facts["iterations_of_run"] = fmt::format("{}", setup.iterations());
  try {
    std::error_code ignored;  // the file says why it cannot be written
    std::filesystem::create_directories(o.save, ignored);
    write_checkpoint(checkpoint_name(o.save, iteration), facts, iteration, parameters, state);
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

}  // namespace

void save_checkpoint(Communicator& communicator, TrainingSetup& setup,
                     std::span<Optimizer* const> optimizers, std::int64_t iteration) {
  tensor::Parameters& parameters = setup.network().parameters();
  const ArenaState state =
      collect_state(communicator, setup.arm(), setup.options().ranks, setup.optimizer_settings(),
                    optimizers, parameters.values().size());
  if (setup.rank() == 0) write(setup, parameters, state, iteration);
}

void restore_optimizers(Communicator& communicator, TrainingSetup& setup,
                        std::span<Optimizer* const> optimizers) {
  tensor::Parameters& parameters = setup.network().parameters();
  ArenaState state;
  try {
    if (setup.rank() == 0) {
      const std::vector<float> values(parameters.values().begin(), parameters.values().end());
      SafetensorsFile file(checkpoint_at(setup.options().resume));
      state = read_state(file, parameters);
      std::ranges::copy(values, parameters.values().begin());
    }
    distribute_state(communicator, setup.arm(), setup.options().ranks, setup.optimizer_settings(),
                     optimizers, parameters.values().size(), state);
  } catch (const CheckpointError& error) {
    throw DataError(fmt::format("--resume: {}", error.what()));
  }
}

}  // namespace kolo::train
