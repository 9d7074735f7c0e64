// The flags of compare and train, in groups as --help shows them.
#pragma once

#include <array>
#include <string>

#include "train/options.h"

namespace CLI {
class App;
}

namespace kolo::train {

inline constexpr std::array kReproducibilities{Reproducibility::kFast, Reproducibility::kOrdered,
                                               Reproducibility::kInvariant};

// Values of the command line before they are interpreted.
struct TypedFlags {
  Options options;
  std::string strategies;
  std::string reproducibility = "fast";
  ArmDefaults arm_defaults;
  std::string straggle;
  std::string compress = "none";
  double timeout_s = 60;
  bool is_versus = false;  // compare was called as versus: other defaults
  bool is_report_given = false;
  bool has_no_report = false;
  bool has_no_progress_thread = false;
  bool is_batch_given = false;
  bool is_seed_given = false;
};

// Declare flags whose values go to `typed`.
void add_comparison_flags(CLI::App& app, TypedFlags& typed);
void add_work_flags(CLI::App& app, TypedFlags& typed);
void add_optimizer_flags(CLI::App& app, TypedFlags& typed);
void add_gradient_flags(CLI::App& app, TypedFlags& typed);
void add_running_flags(CLI::App& app, TypedFlags& typed);
void add_result_flags(CLI::App& app, TypedFlags& typed);
void add_checkpoint_flags(CLI::App& app, TypedFlags& typed);

// With --resume: takes the seed and the global batch of the checkpoint, unless they are given.
// Throws UsageError if the checkpoint cannot be read.
void take_from_checkpoint(TypedFlags& typed);

// Throws UsageError if an arm cannot use the gradient options, or they do not fit the batch.
void check_gradient_flags(const Options& options);

// Throws UsageError for a flag that would be ignored. `typed`: with the arms.
void refuse_unused_flags(const CLI::App& app, const TypedFlags& typed);

}  // namespace kolo::train
