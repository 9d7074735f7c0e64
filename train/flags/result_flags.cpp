#include "train/flags/training_flags.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "train/flags/flag_values.h"

namespace kolo::train {
namespace {

constexpr std::int64_t kMostEpochs = std::numeric_limits<int>::max();  // and iterations

}  // namespace

void add_result_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "Measurements and results";
  app.add_option("--eval-every,--eval_every", o.eval_every, "epochs between evaluations [1]")
      ->check(whole_number(1, kMostEpochs))
      ->group(group);
  app.add_option("--hash-every,--hash_every", o.hash_every,
                 "iterations between checks that the replicas are equal; 0: only at the end [20]")
      ->check(whole_number(0, kMostEpochs))
      ->group(group);
  app.add_option("--skip-steps,--skip_steps", o.skip_steps,
                 "iterations at the start that do not count for speeds [5]")
      ->check(whole_number(0, kMostEpochs))
      ->group(group);
  app.add_flag("--profile", o.has_profile,
               "also report the time of each layer; this slows the run down a little [no]")
      ->group(group);
  app.add_flag("--timeline", o.has_timeline,
               "also write a Chrome trace of the last two iterations, for ui.perfetto.dev [no]")
      ->group(group);
  app.add_option("--report", o.report,
                 "folder for report.json, report.md and plots [compare: report]")
      ->check(nonempty_text("a folder; --no-report writes none"))
      ->group(group);
  app.add_flag("--no-report", typed.has_no_report, "no folder, only the table")->group(group);
  app.add_option("--events-fd", o.events_fd)->configurable(false)->group("");  // not shown
  app.add_option("--turns-fd", o.turns_fd)->configurable(false)->group("");
}

}  // namespace kolo::train
