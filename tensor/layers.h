#pragma once

// Layers: operations with the parameters that they own. The constructor registers the parameters
// under torchvision's names ("layer1.0.conv1" + ".weight"). A call records the operation. Layers
// are plain values.

#include <cstdint>
#include <string>

#include "tensor/arena.h"
#include "tensor/autograd.h"
#include "tensor/ops/batch_norm.h"
#include "tensor/ops/conv2d.h"

namespace kolo::tensor {

// x: N, H, W, in  ->  N, H', W', out. The initial weights are those of torchvision's residual
// networks; Initial::uniform_fan_in gives those of torch.nn.Conv2d.
class Conv2d {
 public:
  Conv2d(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
         Conv2dSettings settings, Initial weights = Initial::kaiming_normal_fan_out);
  Value operator()(Tape& tape, const Value& x) const;

 private:
  Conv2dSettings settings_;
  ParameterId weight_ = -1;
  ParameterId bias_ = -1;
};

// Normalises each channel over N, H, W; then adds `residual` and applies ReLU, both optional, all
// in one node. Registers weight (1), bias (0) and the buffers running_mean, running_var,
// num_batches_tracked.
class BatchNorm2d {
 public:
  BatchNorm2d(Parameters& parameters, const std::string& name, std::int64_t channels);
  Value operator()(Tape& tape, const Value& x) const;
  Value relu(Tape& tape, const Value& x) const;
  Value add_relu(Tape& tape, const Value& x, const Value& residual) const;

 private:
  BatchNormParameters ids_;
};

// x: N, in  ->  N, out; with bias.
class Linear {
 public:
  Linear(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out);
  Value operator()(Tape& tape, const Value& x) const;

 private:
  ParameterId weight_, bias_;
};

}  // namespace kolo::tensor
