#include "train/pipeline/schedule.h"

#include <algorithm>

namespace kolo::train {

std::vector<PipelineStep> one_forward_one_backward(int stage, int stages,
                                                   std::size_t micro_batches) {
  const std::size_t first = std::min(static_cast<std::size_t>(stages - 1 - stage), micro_batches);
  std::vector<PipelineStep> steps;
  for (std::size_t i = 0; i < first; ++i) steps.push_back({false, i});
  for (std::size_t i = first; i < micro_batches; ++i) {
    steps.push_back({false, i});
    steps.push_back({true, i - first});
  }
  for (std::size_t i = micro_batches - first; i < micro_batches; ++i) steps.push_back({true, i});
  return steps;
}

double ideal_bubble(int stages, std::size_t micro_batches) {
  const double idle = stages - 1;
  return idle / (static_cast<double>(micro_batches) + idle);
}

}  // namespace kolo::train
