#pragma once

// oneDNN's direct convolutions, created once per shape and cached.

#include <map>
#include <memory>
#include <vector>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor::onednn {

// The primitives of one network. The number of threads is fixed at the first use of a shape.
class Convolutions {
 public:
  explicit Convolutions(Precision precision);
  ~Convolutions();

  // x and dy are of the precision.
  void forward(const Conv2dShape& shape, const void* x, const float* weight, float* y);
  void backward_data(const Conv2dShape& shape, const float* weight, const void* dy, float* dx);
  void backward_weight(const Conv2dShape& shape, const void* x, const void* dy,
                       float* weight_gradient);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kolo::tensor::onednn
