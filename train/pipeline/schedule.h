// 1F1B: the order in which a stage of a pipeline computes its micro-batches.
//
// A stage first runs forward until the first gradient can arrive. Then it alternates: one
// forward, one backward. So stage s of S keeps at most S - s micro-batches between forward and
// backward, however many there are. Source: Narayanan et al., "PipeDream", 2019; without its stale
// weights: all micro-batches of an iteration use the same ones.
#pragma once

#include <cstddef>
#include <vector>

namespace kolo::train {

struct PipelineStep {
  bool is_backward = false;
  std::size_t micro_batch = 0;
  bool operator==(const PipelineStep&) const = default;
};

// The steps of stage `stage` of `stages` for `micro_batches` micro-batches.
std::vector<PipelineStep> one_forward_one_backward(int stage, int stages,
                                                   std::size_t micro_batches);

// The fraction of the time in which a stage waits if all micro-batches take the same time on all
// stages: (s - 1) / (m + s - 1).
double ideal_bubble(int stages, std::size_t micro_batches);

}  // namespace kolo::train
