#include "train/checkpoint/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/gradient_state.h"
#include "train/checkpoint/optimizer_state.h"
#include "train/checkpoint/stage_tensors.h"
#include "train/count_text.h"
#include "train/data/batch_plan.h"
#include "train/models/model.h"
#include "train/report/report.h"

namespace kolo::train {
namespace {

std::string model_text(const Options& options, const Dataset& data) {
  return fmt::format("'{}' with {} classes", options.model, data.classes());
}

// The names and shapes of the whole model, without memory for its values.
tensor::Parameters outline(const Options& options, const Dataset& data) {
  tensor::Parameters parameters;
  const ImageShape image = data.shape();
  make_model(
      options.model, parameters,
      {{image.height, image.width, image.channels}, data.classes(), stem_from(options.stem)});
  return parameters;
}

// Checks all that the ranks will read later.
void require_states(const Options& options, const SafetensorsFile& file,
                    const tensor::Parameters& parameters) {
  const std::vector<std::string> states = states_in(file, parameters);
  OptimizerSettings settings;
  settings.kind = optimizer_from(options.optimizer);
  for (const std::string& name : states_of(settings)) {
    if (std::ranges::find(states, name) == states.end())
      throw CheckpointError(fmt::format("{}: it has no '{}' of the optimizer", file.path(), name));
  }
  loss_scale_in(file);
  require_all_unsent(file, states);
}

// Checks an open file; returns the iterations that are done.
std::int64_t check(const Options& options, const Dataset& data, const SafetensorsFile& file,
                   std::int64_t iterations) {
  const tensor::Parameters parameters = outline(options, data);
  if (options.resume.empty()) {
    require_parameters(file, parameters, model_text(options, data));
    return 0;
  }
  require_same_run(file, facts_of(options, data));
  require_parameters(file, parameters, model_text(options, data));
  require_states(options, file, parameters);
  const std::int64_t done = iteration_of(file);
  if (done >= iterations)
    throw CheckpointError(
        fmt::format("{}: {} of the {} of this run are done; raise --epochs or --steps", file.path(),
                    done, count_text(iterations, "iteration")));
  return done;
}

// The schedule of the learning rate ends with the run.
void tell_other_length(const Options& options, const SafetensorsFile& file,
                       std::int64_t iterations) {
  const auto before = file.metadata().find("iterations_of_run");
  if (options.resume.empty() || options.lr_schedule == "constant" ||
      before == file.metadata().end() || before->second == fmt::format("{}", iterations))
    return;
  std::fprintf(
      stderr,
      "kolo-train: --resume: the checkpoint's run has %s iterations, this run has %lld; learning "
      "rates depend on this number, so they differ from those of an uninterrupted run; to avoid "
      "that, use the same --epochs and --steps\n",
      before->second.c_str(), static_cast<long long>(iterations));
}

const char* flag_of(const Options& options) {
  return options.resume.empty() ? "--load" : "--resume";
}

std::string path_of(const Options& options) {
  return options.resume.empty() ? options.load : checkpoint_at(options.resume);
}

// Later checkpoints of another run would be taken for the newest of this one.
void check_folder(const Options& options, std::int64_t done) {
  if (options.save.empty()) return;
  const auto refuse = [&](const std::string& reason) {
    throw DataError(fmt::format("--save {}: {}", options.save, reason));
  };
  const auto there = checkpoints_in(options.save);
  if (!there.empty() && there.rbegin()->first > done)
    refuse(
        fmt::format("it has checkpoints of a run up to iteration {}; go on from them with "
                    "--resume {}, or choose another folder",
                    there.rbegin()->first, options.save));
  if (const std::string why = why_not_writable(options.save); !why.empty())
    refuse(fmt::format("the folder cannot be written: {}", why));
}

}  // namespace

void check_checkpoints(const Options& options, const Dataset& data) {
  std::int64_t done = 0;
  if (!options.resume.empty() || !options.load.empty()) {
    const BatchPlan plan(data.size(), options.samples_per_iteration(), options.ranks);
    std::int64_t iterations = plan.iterations_per_epoch() * options.epochs;
    if (options.steps > 0) iterations = std::min(iterations, options.steps);
    try {
      const SafetensorsFile file(path_of(options));
      done = check(options, data, file, iterations);
      tell_other_length(options, file, iterations);
    } catch (const CheckpointError& error) {
      throw DataError(fmt::format("{}: {}", flag_of(options), error.what()));
    }
  }
  check_folder(options, done);
}

std::int64_t read_initial_weights(const Options& options, const Dataset& data,
                                  tensor::Parameters& parameters, std::int64_t iterations,
                                  Communicator* stages) {
  const auto read_all = [&](const TensorReader& read) { read_parameters(read, parameters); };
  try {
    std::optional<SafetensorsFile> file;
    std::int64_t done = 0;
    if (stages == nullptr || stages->rank() == 0) {
      file.emplace(path_of(options));
      done = check(options, data, *file, iterations);
    }
    if (stages == nullptr) {
      read_all(reader_of(*file));
    } else {
      stages->broadcast(std::span(&done, 1));
      read_for_all(*stages, file ? &*file : nullptr, read_all);
    }
    return done;
  } catch (const CheckpointError& error) {
    throw DataError(fmt::format("{}: {}", flag_of(options), error.what()));
  }
}

}  // namespace kolo::train
