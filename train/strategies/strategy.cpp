#include "train/strategies/strategy.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "train/strategies/parameter_server.h"
#include "train/strategies/ring.h"

namespace kolo::train {
namespace {

struct Row {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const Arm& arm, StrategyContext context);
};
constexpr std::array<Row, 2> kTable{{
    {"ring", make_ring},
    {"ps", make_parameter_server},
}};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const Arm& arm, StrategyContext context) {
  for (const Row& row : kTable) {
    if (row.name == arm.strategy) return row.make(arm, std::move(context));
  }
  throw std::invalid_argument(fmt::format("unknown strategy '{}'", arm.strategy));
}

std::string formula_of(const Arm& arm) {
  if (arm.placement != ServerPlacement::dedicated) {
    return "each of n workers sends and receives 2 (n - 1) / n of the gradients";
  }
  constexpr const char* kWorkers = "each of n workers sends and receives the gradients once, ";
  if (arm.servers == 1) return fmt::format("{}the server n times", kWorkers);
  return fmt::format("{0}each of {1} servers n / {1} times", kWorkers, arm.servers);
}

}  // namespace kolo::train
