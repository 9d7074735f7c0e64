#include "train/strategies/strategy.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "train/count_text.h"
#include "train/strategies/all_reduce.h"
#include "train/strategies/data_parallel.h"
#include "train/strategies/parameter_server.h"
#include "train/strategies/sharded.h"

namespace kolo::train {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const Arm& arm, StrategyContext context);
};
constexpr std::array<Row, 9> kTable{{
    {"ring", make_all_reduce},
    {"tree", make_all_reduce},
    {"hierarchical", make_all_reduce},
    {"auto", make_all_reduce},
    {"sharded", make_sharded},
    {"ps", make_parameter_server},
    {"local-sgd", make_all_reduce},
    {"pipeline", make_all_reduce},
    {"dataparallel", make_data_parallel},
}};

}  // namespace

Work Strategy::exchange_buffer(std::span<float>) {
  throw std::logic_error("this strategy exchanges ranges of the arena only");
}

std::unique_ptr<Strategy> make_strategy(const Arm& arm, StrategyContext context) {
  for (const Row& row : kTable) {
    if (row.name != arm.strategy) continue;
    const bool has_hook = row.make == make_all_reduce && arm.local_steps == 0;
    if (context.hook && (!has_hook || arm.sync == Sync::fusion))
      throw std::invalid_argument(fmt::format("the arm '{}' does not use a hook", arm.name()));
    return row.make(arm, std::move(context));
  }
  throw std::invalid_argument(fmt::format("unknown strategy '{}'", arm.strategy));
}

std::string formula_of(const Arm& arm, bool is_in_rank_order) {
  if (is_in_rank_order && arm.strategy == "dataparallel")
    return "rank 0 sends the parameters up to ceil(log2 n) times, along a binomial tree, and each "
           "other worker its share of the batch; each of n workers sends and receives the "
           "gradients once, in a chain";
  if (arm.stages > 0)
    return "each stage sends its output to the next stage, and the gradient of its input to the "
           "stage before, for all samples of its replica; with r replicas it also sends and "
           "receives 2 "
           "(r - 1) / r of its gradients";
  if (arm.strategy == "sharded")
    return "each of n workers sends and receives (n - 1) / n of the gradients, and as much of the "
           "new parameters";
  if (is_in_rank_order && arm.placement == ServerPlacement::none && arm.local_steps == 0)
    return "each of n workers sends and receives 2 (n - 1) / n of the gradients, by two_shot, "
           "which "
           "sums in the order of ranks";
  if (arm.strategy == "tree")
    return "each of n workers sends and receives 1 to 3 times half of the gradients in each of two "
           "trees, 2 (n - 1) / n of them on average";
  if (arm.strategy == "hierarchical")
    return "the workers of a host sum among themselves, and one part of them with other hosts; on "
           "one host each sends and receives 2 (n - 1) / n of the gradients";
  if (arm.strategy == "auto")
    return "each of n workers sends and receives the bytes of the algorithm that the planner chose "
           "for each bucket";
  if (arm.strategy == "dataparallel")
    return "rank 0 sends the parameters and receives the gradients up to ceil(log2 n) times, along "
           "a binomial tree, and sends each other worker its share of the batch";
  if (arm.local_steps > 0)
    return fmt::format(
        "each of n workers sends and receives 2 (n - 1) / n of the parameters, once "
        "in {} iterations and at the end of each epoch",
        arm.local_steps);
  if (arm.placement == ServerPlacement::split) {
    return fmt::format(
        "each of n workers and {0} sends and receives 2n (n - 1) / (n^2 + {1}n - {2}) of the "
        "gradients; with n <= {1} each worker sends and receives them once, and each server n / "
        "{1} times",
        count_text(arm.servers, "server"), arm.servers, 2 * arm.servers);
  }
  if (arm.placement != ServerPlacement::dedicated) {
    return "each of n workers sends and receives 2 (n - 1) / n of the gradients";
  }
  constexpr const char* kWorkers = "each of n workers sends and receives the gradients once, ";
  if (arm.servers == 1) return fmt::format("{}the server n times", kWorkers);
  return fmt::format("{0}each of {1} servers n / {1} times", kWorkers, arm.servers);
}

}  // namespace kolo::train
