#include "train/pipeline/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace kolo::train {
namespace {

// The best cut of a model's first parts: its cost, and where its last stage begins.
struct Cut {
  double slowest = std::numeric_limits<double>::infinity();  // cost of the most expensive stage
  double sent = 0;                                           // numbers between stages
  std::size_t begin = 0;

  bool is_better_than(const Cut& other) const {
    return slowest < other.slowest || (slowest == other.slowest && sent < other.sent);
  }
};

Stage part_of(std::string_view model, const ModelSettings& settings, int part,
              const tensor::Shape& input, std::int64_t samples) {
  ModelSettings one = settings;
  one.parts = {part, part + 1};
  tensor::Parameters parameters;
  const auto layers = make_model(model, parameters, one);
  Stage stage{one.parts, input, tensor::outline_of(*layers, parameters, input).output, 0};
  double weights = 0;
  for (const tensor::Parameter& each : parameters.list())
    weights += static_cast<double>(each.shape.count());
  const bool is_image = stage.output.rank() == 3;
  const std::int64_t pixels = is_image ? stage.output[0] * stage.output[1] : 1;
  stage.cost = weights * (static_cast<double>(pixels * samples) + kCostOfWeight);
  return stage;
}

}  // namespace

std::vector<Stage> parts_with_costs(std::string_view model, const ModelSettings& settings,
                                    std::int64_t samples) {
  std::vector<Stage> parts;
  tensor::Shape input = settings.image;
  for (int part = 0; part < parts_of_model(model, settings); ++part) {
    parts.push_back(part_of(model, settings, part, input, samples));
    input = parts.back().output;
  }
  return parts;
}

// best[k][n]: the best cut of the first n parts into k + 1 stages.
std::vector<Stage> cut_into_stages(std::string_view model, const ModelSettings& settings,
                                   int stages, std::int64_t samples) {
  const std::vector<Stage> parts = parts_with_costs(model, settings, samples);
  const std::size_t all = parts.size();
  const auto wanted = static_cast<std::size_t>(std::max(stages, 1));
  if (wanted > all) {
    throw std::invalid_argument(
        fmt::format("model '{}' has {} parts, which cannot be divided into {} stages; take at most "
                    "{}, or a deeper model",
                    model, all, stages, all));
  }
  std::vector<std::vector<Cut>> best(wanted, std::vector<Cut>(all + 1));
  const auto cost = [&](std::size_t begin, std::size_t end) {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += parts[i].cost;
    return sum;
  };
  for (std::size_t n = 1; n <= all; ++n) best[0][n] = {cost(0, n), 0, 0};
  for (std::size_t k = 1; k < wanted; ++k) {
    for (std::size_t n = k + 1; n <= all; ++n) {
      for (std::size_t begin = k; begin < n; ++begin) {
        const Cut& before = best[k - 1][begin];
        const Cut cut{std::max(before.slowest, cost(begin, n)),
                      before.sent + static_cast<double>(parts[begin].input.count()), begin};
        if (cut.is_better_than(best[k][n])) best[k][n] = cut;
      }
    }
  }
  std::vector<Stage> result(wanted);
  std::size_t end = all;
  for (std::size_t k = wanted; k-- > 0;) {
    const std::size_t begin = best[k][end].begin;
    result[k] = {{static_cast<int>(begin), static_cast<int>(end)},
                 parts[begin].input,
                 parts[end - 1].output,
                 cost(begin, end)};
    end = begin;
  }
  return result;
}

}  // namespace kolo::train
