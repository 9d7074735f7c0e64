#include "train/checkpoint/initial_weights.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "train/checkpoint/checkpoint.h"
#include "train/count_text.h"
#include "train/data/batch_plan.h"
#include "train/models/model.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

std::string model_text(const Options& options, const Dataset& data) {
  return fmt::format("'{}' with {} classes", options.model, data.classes());
}

// Checks an open file; returns the iterations that are done.
std::int64_t check(const Options& options, const Dataset& data, const SafetensorsFile& file,
                   const tensor::Parameters& parameters, std::int64_t iterations) {
  if (options.resume.empty()) {
    require_parameters(file, parameters, model_text(options, data));
    return 0;
  }
  require_same_run(file, facts_of(options, data));
  require_parameters(file, parameters, model_text(options, data));
  const std::int64_t done = iteration_of(file);
  if (done >= iterations)
    throw CheckpointError(
        fmt::format("{}: {} of the {} of this run are done; raise --epochs or --steps", file.path(),
                    done, count_text(iterations, "iteration")));
  return done;
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
  std::error_code code;
  fs::path existing = fs::absolute(options.save, code).lexically_normal();
  while (!existing.empty() && !fs::exists(existing, code)) existing = existing.parent_path();
  if (!fs::is_directory(existing, code))
    refuse(fmt::format("'{}' is not a folder", existing.string()));
  if (access(existing.c_str(), W_OK | X_OK) != 0)
    refuse(fmt::format("'{}' is not writable", existing.string()));
}

}  // namespace

void check_checkpoints(const Options& options, const Dataset& data) {
  std::int64_t done = 0;
  if (!options.resume.empty() || !options.load.empty()) {
    const BatchPlan plan(data.size(), options.samples_per_iteration(), options.ranks);
    std::int64_t iterations = plan.iterations_per_epoch() * options.epochs;
    if (options.steps > 0) iterations = std::min(iterations, options.steps);
    tensor::Parameters parameters;
    const ImageShape image = data.shape();
    make_model(
        options.model, parameters,
        {{image.height, image.width, image.channels}, data.classes(), stem_from(options.stem)});
    try {
      const SafetensorsFile file(path_of(options));
      done = check(options, data, file, parameters, iterations);
    } catch (const CheckpointError& error) {
      throw DataError(fmt::format("{}: {}", flag_of(options), error.what()));
    }
  }
  check_folder(options, done);
}

std::int64_t read_initial_weights(const Options& options, const Dataset& data,
                                  tensor::Parameters& parameters, std::int64_t iterations) {
  try {
    SafetensorsFile file(path_of(options));
    const std::int64_t done = check(options, data, file, parameters, iterations);
    read_parameters(file, parameters);
    return done;
  } catch (const CheckpointError& error) {
    throw DataError(fmt::format("{}: {}", flag_of(options), error.what()));
  }
}

}  // namespace kolo::train
