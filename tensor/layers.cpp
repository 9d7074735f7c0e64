#include "tensor/layers.h"

#include "tensor/ops/linear.h"

namespace kolo::tensor {

Conv2d::Conv2d(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
               Conv2dSettings settings, Initial weights)
    : settings_(settings) {
  const std::int64_t fan_in = in * settings.kernel * settings.kernel;
  weight_ = parameters.add(name + ".weight", {out, in, settings.kernel, settings.kernel}, weights,
                           fan_in);
  if (settings.has_bias) {
    bias_ = parameters.add(name + ".bias", {out}, Initial::uniform_fan_in, fan_in);
  }
}

Value Conv2d::operator()(Tape& tape, const Value& x) const {
  return conv2d(tape, x, weight_, bias_, settings_);
}

BatchNorm2d::BatchNorm2d(Parameters& parameters, const std::string& name, std::int64_t channels)
    : ids_{parameters.add(name + ".weight", {channels}, Initial::one),
           parameters.add(name + ".bias", {channels}, Initial::zero),
           parameters.add_buffer(name + ".running_mean", {channels}, 0.0F),
           parameters.add_buffer(name + ".running_var", {channels}, 1.0F),
           parameters.add_buffer(name + ".num_batches_tracked", {}, 0.0F)} {}

Value BatchNorm2d::operator()(Tape& tape, const Value& x) const {
  return batch_norm(tape, x, ids_, nullptr, false);
}

Value BatchNorm2d::relu(Tape& tape, const Value& x) const {
  return batch_norm(tape, x, ids_, nullptr, true);
}

Value BatchNorm2d::add_relu(Tape& tape, const Value& x, const Value& residual) const {
  return batch_norm(tape, x, ids_, residual, true);
}

Linear::Linear(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out)
    : weight_(parameters.add(name + ".weight", {out, in}, Initial::uniform_fan_in, in)),
      bias_(parameters.add(name + ".bias", {out}, Initial::uniform_fan_in, in)) {}

Value Linear::operator()(Tape& tape, const Value& x) const {
  return linear(tape, x, weight_, bias_);
}

}  // namespace kolo::tensor
