#include "train/flags/training_flags.h"

#include <CLI/CLI.hpp>

#include "train/flags/flag_values.h"

namespace kolo::train {

void add_optimizer_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "The optimizer, the same for every arm";
  app.add_option("--optimizer", o.optimizer, "sgd, adamw, lars [sgd]")
      ->check(one_of("optimizer", {"sgd", "adamw", "lars"}))
      ->group(group);
  app.add_option("--lr", o.lr,
                 "learning rate at a global batch of 256, scaled linearly [sgd: 0.01; adamw: "
                 "0.001; lars: 1]")
      ->check(real_number(0, Least::excluded))
      ->group(group);
  app.add_option("--momentum", o.momentum, "of sgd and lars [0.9]")
      ->check(real_number(0, Least::included, 1))
      ->group(group);
  app.add_flag("--nesterov", o.has_nesterov, "Nesterov's form of sgd's momentum [no]")
      ->group(group);
  app.add_option("--weight-decay,--weight_decay", o.weight_decay, "[1e-4; adamw: 0.01]")
      ->check(real_number(0, Least::included))
      ->group(group);
  app.add_option("--warmup-epochs,--warmup_epochs", o.warmup_epochs,
                 "epochs in which the learning rate grows from near 0 [1]")
      ->check(real_number(0, Least::included, 1e6))
      ->group(group);
  app.add_option("--lr-schedule,--lr_schedule", o.lr_schedule,
                 "constant, step, cosine, polynomial [cosine]")
      ->check(one_of("lr-schedule", {"constant", "step", "cosine", "polynomial"}))
      ->group(group);
  app.add_option("--lr-step-epochs,--lr_step_epochs", o.lr_step_epochs,
                 "epochs between two steps of the schedule step [a third of --epochs]")
      ->check(real_number(0, Least::excluded, 1e6))
      ->group(group);
  app.add_option("--lr-step-factor,--lr_step_factor", o.lr_step_factor,
                 "factor of each of these steps [0.1]")
      ->check(real_number(0, Least::excluded))
      ->group(group);
  app.add_option("--lr-power,--lr_power", o.lr_power, "power of the schedule polynomial [2]")
      ->check(real_number(0, Least::excluded))
      ->group(group);
  app.add_option("--label-smoothing,--label_smoothing", o.label_smoothing,
                 "part of each training target that is spread over all classes [0]")
      ->check(real_number(0, Least::included, 1))
      ->group(group);
}

}  // namespace kolo::train
