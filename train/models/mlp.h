// Multilayer perceptron: two hidden layers of 512, with ReLU.
//
// As the models in tutorials for MNIST: 669,706 parameters for 28 x 28 x 1 and 10 classes. The
// names are fc1, fc2 and fc3. The initial values are those of torch.nn.Linear.
#pragma once

#include <memory>

#include "train/models/chain.h"

namespace kolo::train {

// Takes any image.
std::unique_ptr<Chain> make_mlp(tensor::Parameters& parameters, const ModelSettings& settings);

}  // namespace kolo::train
