#include "train/flags/training_flags.h"

#include <CLI/CLI.hpp>

#include "train/flags/flag_values.h"

namespace kolo::train {

void add_optimizer_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
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

}  // namespace kolo::train
