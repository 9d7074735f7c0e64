#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "train/checkpoint/checkpoint.h"
#include "train/flags/flag_values.h"
#include "train/flags/training_flags.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

template <typename Number>
void take(const SafetensorsFile& file, const char* name, Number& value) {
  const auto found = file.metadata().find(name);
  if (found == file.metadata().end()) return;  // refused later, with all that is missing
  const std::string& text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), value);
}

}  // namespace

void add_checkpoint_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "Checkpoints and weights (safetensors files)";
  app.add_option("--load", o.load, "file with the initial weights, also of torchvision [none]")
      ->check(nonempty_text("a file"))
      ->group(group);
  if (o.command != Command::train) return;
  app.add_option("--save", o.save, "folder for checkpoints [none]")
      ->check(nonempty_text("a folder"))
      ->group(group);
  app.add_option("--save-every,--save_every", o.save_every, "epochs between two checkpoints [1]")
      ->check(whole_number(1, 1 << 30))
      ->group(group);
  app.add_option("--keep", o.keep, "checkpoints that stay, the last ones [3]")
      ->check(whole_number(1, 1 << 30))
      ->group(group);
  app.add_option("--resume", o.resume,
                 "go on from this checkpoint, or from the last one in this folder [none]")
      ->check(nonempty_text("a checkpoint or a folder"))
      ->group(group);
}

void take_from_checkpoint(TypedFlags& typed) {
  Options& o = typed.options;
  if (o.resume.empty() || (typed.is_batch_given && typed.is_seed_given)) return;
  try {
    const SafetensorsFile file(checkpoint_at(o.resume));
    if (!typed.is_batch_given) take(file, "global_batch", o.global_batch);
    if (!typed.is_seed_given) take(file, "seed", o.seed);
  } catch (const CheckpointError& error) {
    const bool may_be_elsewhere = read_settings().rank.value_or(0) > 0;
    throw UsageError(fmt::format(
        "--resume: {}{}", error.what(),
        may_be_elsewhere
            ? "; a host without the file needs --seed and --global-batch, with the file's values"
            : ""));
  }
}

}  // namespace kolo::train
