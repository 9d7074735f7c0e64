#include "train/flags/training_flags.h"

#include <CLI/CLI.hpp>

#include "train/flags/flag_values.h"

namespace kolo::train {

void add_comparison_flags(CLI::App& app, TypedFlags& typed) {
  Options& o = typed.options;
  const std::string group = "Arms of the comparison";
  app.add_option("--strategies,--strategy", typed.strategies,
                 "arms, separated by commas: " + list_of_strategies() +
                     " [compare: ring,ps; versus: ring,ps,torch-ddp,torch-ps; train: ring]")
      ->check(nonempty_text("arms, as ring,ps"))
      ->group(group);
  app.add_option("--ranks,--n_gpus,--n-gpus", o.ranks, "workers [2]")
      ->check(whole_number(1, 1024))
      ->group(group);
  app.add_option(
         "--ps-mode,--ps_mode", typed.arm_defaults.ps_mode,
         "placement of servers of 'ps' without words: dedicated, sharded, everywhere, split "
         "[dedicated]")
      ->group(group);
  app.add_option("--servers", typed.arm_defaults.servers,
                 "dedicated servers of 'ps' without words [1]")
      ->check(whole_number(1, 64))
      ->group(group);
  app.add_option("--ps-optimizer,--ps_optimizer", typed.arm_defaults.ps_optimizer,
                 "ranks that apply the optimizer of 'ps' without words: worker, server [worker]")
      ->group(group);
  app.add_option("--seeds", o.seeds, "repetitions with seeds S, S+1, ..., to show the spread [1]")
      ->check(whole_number(1, 1000))
      ->group(group);
  app.add_option("--python", o.python,
                 "interpreter of an environment with torch, for the arms of PyTorch [python3]")
      ->check(nonempty_text("a program, as python3"))
      ->group(group);
}

}  // namespace kolo::train
