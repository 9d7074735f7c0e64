// Partition of a model into the stages of a pipeline.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "train/models/model.h"

namespace kolo::train {

struct Stage {
  PartRange parts;
  // For one sample. The output of a stage is the input of the next.
  tensor::Shape input, output;
  // Estimated time for one micro-batch, in multiplications of forward. Each weight counts once per
  // sample and pixel of its part's output, plus kCostOfWeight for reading and writing it in memory.
  double cost = 0;
};
// A micro-batch reads each weight in forward and backward, writes its gradient, and adds that to
// the sum. Measured with ResNet-50 and micro-batches of 8 samples.
inline constexpr double kCostOfWeight = 24;

// Each part of a model as a stage of its own, with its cost. `samples`: of a micro-batch.
std::vector<Stage> parts_with_costs(std::string_view model, const ModelSettings& settings,
                                    std::int64_t samples);

// Cuts a model between parts into `stages` stages so that the most expensive stage is as cheap as
// possible; of equal cuts, the one with the smallest activations between stages. Throws
// std::invalid_argument if the model has fewer parts.
std::vector<Stage> cut_into_stages(std::string_view model, const ModelSettings& settings,
                                   int stages, std::int64_t samples);

}  // namespace kolo::train
