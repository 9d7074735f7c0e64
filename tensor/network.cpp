#include "tensor/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kolo::tensor {

namespace {

Shape of_samples(std::int64_t samples, const Shape& one) {
  switch (one.rank()) {
    case 1:
      return {samples, one[0]};
    case 3:
      return {samples, one[0], one[1], one[2]};
    default:
      throw std::invalid_argument(
          fmt::format("a sample has shape H x W x C, or one dimension, not {}", one.text()));
  }
}

Shape of_one_sample(const Shape& samples) {
  if (samples.rank() == 2) return {samples[1]};
  if (samples.rank() == 4) return {samples[1], samples[2], samples[3]};
  throw std::invalid_argument(
      fmt::format("a model returns N x H x W x C, or N x classes, not {}", samples.text()));
}

// Runs the model on one sample, shapes only. Returns the shape of its output, without the samples.
Shape run_dry(Model& model, Tape& tape, const Shape& image) {
  const Value output = model.forward(tape, tape.input(Tensor::outline(of_samples(1, image))));
  return of_one_sample(output->data.shape());
}

std::int64_t real_labels(std::span<const std::int32_t> labels) {
  return std::count_if(labels.begin(), labels.end(), [](std::int32_t l) { return l >= 0; });
}

}  // namespace

Outline outline_of(Model& model, Parameters& parameters, const Shape& input) {
  Pool unused;
  Tape tape(nullptr, parameters, unused, Mode::dry);
  const Shape output = run_dry(model, tape, input);
  return {output, tape.fewest_normalised()};
}

Network::Network(std::unique_ptr<Model> model, Parameters parameters, const Shape& image,
                 std::unique_ptr<Backend> backend, std::uint64_t seed)
    : model_(std::move(model)),
      parameters_(std::move(parameters)),
      image_(image),
      backend_(std::move(backend)) {
  Tape tape(nullptr, parameters_, pool_, Mode::dry);
  output_shape_ = run_dry(*model_, tape, image_);
  fewest_normalised_ = tape.fewest_normalised();
  normalised_channels_ = tape.normalised_channels();
  const std::vector<ParameterId> order(tape.uses().rbegin(), tape.uses().rend());
  parameters_.lay_out(order);
  parameters_.initialize(seed);
}

Network::~Network() = default;

// Forward sums the statistics of each normalisation, backward its gradients (ops/batch_norm.cpp).
std::vector<std::size_t> Network::lengths_of_sums() const {
  std::vector<std::size_t> lengths;
  for (const std::int64_t channels : normalised_channels_)
    lengths.push_back(2 * static_cast<std::size_t>(channels) + 1);
  for (std::size_t i = normalised_channels_.size(); i-- > 0;)
    lengths.push_back(2 * static_cast<std::size_t>(normalised_channels_[i]));
  return lengths;
}

Network::Pass& Network::begin_pass(std::size_t slot, const float* input, std::int64_t samples,
                                   Mode mode, const UseHook& before_use, bool has_gradient) {
  if (passes_.size() <= slot) passes_.resize(slot + 1);
  Pass& pass = passes_[slot];
  pass = {};
  backend_->enter();
  pass.tape =
      std::make_unique<Tape>(backend_.get(), parameters_, pool_, mode, before_use, profile_, sum_);
  // const_cast is safe: a leaf is only read.
  pass.input =
      pass.tape->input(Tensor::borrow(const_cast<float*>(input), of_samples(samples, image_)));
  pass.input->needs_gradient = has_gradient && mode == Mode::training;
  pass.output = model_->forward(*pass.tape, pass.input);
  return pass;
}

Network::Pass& Network::finished_pass(std::size_t slot, const char* next) {
  if (slot < passes_.size() && passes_[slot].output != nullptr) return passes_[slot];
  throw std::invalid_argument(fmt::format("{} without a training forward before it", next));
}

Outcome Network::forward(const Batch& batch, Mode mode, const UseHook& before_use) {
  const auto count = static_cast<std::int64_t>(batch.labels.size());
  if (count < 1) throw std::invalid_argument("a batch needs at least one sample");
  const Shape shape = of_samples(count, image_);
  if (static_cast<std::int64_t>(batch.images.size()) != shape.count()) {
    throw std::invalid_argument(
        fmt::format("a batch of {} labels needs images of shape {}, got {} numbers", count,
                    shape.text(), batch.images.size()));
  }
  begin_pass(0, batch.images.data(), count, mode, before_use, false);
  return loss(0, batch.labels, batch.divisor, batch.label_smoothing);
}

void Network::backward(const GradientHook& hook) { backward_stage(0, {}, hook); }

std::span<const float> Network::forward_stage(std::size_t slot, std::span<const float> input,
                                              std::int64_t samples, Mode mode, bool has_gradient,
                                              const UseHook& before_use) {
  const Shape shape = of_samples(samples, image_);
  if (static_cast<std::int64_t>(input.size()) != shape.count()) {
    throw std::invalid_argument(fmt::format("a stage needs an input of shape {}, got {} numbers",
                                            shape.text(), input.size()));
  }
  const Tensor& output =
      begin_pass(slot, input.data(), samples, mode, before_use, has_gradient).output->data;
  return {output.data(), static_cast<std::size_t>(output.count())};
}

Outcome Network::loss(std::size_t slot, std::span<const std::int32_t> labels, double divisor,
                      double label_smoothing) {
  if (divisor <= 0) divisor = static_cast<double>(std::max<std::int64_t>(1, real_labels(labels)));
  const Pass& pass = finished_pass(slot, "loss");
  return softmax_cross_entropy(*pass.tape, pass.output, labels, divisor, label_smoothing);
}

std::span<const float> Network::backward_stage(std::size_t slot,
                                               std::span<const float> output_gradient,
                                               const GradientHook& hook) {
  Pass& pass = finished_pass(slot, "backward");
  backend_->enter();
  if (!output_gradient.empty()) {
    const Shape& shape = pass.output->data.shape();
    if (static_cast<std::int64_t>(output_gradient.size()) != shape.count()) {
      throw std::invalid_argument(
          fmt::format("the gradient of a stage's output needs shape {}, "
                      "got {} numbers",
                      shape.text(), output_gradient.size()));
    }
    const Tensor gradient(pool_, shape);  // of the pool, since nodes may overwrite it
    std::ranges::copy(output_gradient, gradient.data());
    pass.output->gradients.push_back(gradient);
  }
  pass.tape->backward(hook);
  if (!pass.input->needs_gradient) return {};
  pass.input_gradient = pass.tape->take_gradient(*pass.input);
  return {pass.input_gradient.data(), static_cast<std::size_t>(pass.input_gradient.count())};
}

std::span<const float> Network::logits() const {
  if (passes_.empty() || passes_[0].output == nullptr) return {};
  const Tensor& logits = passes_[0].output->data;
  return {logits.data(), static_cast<std::size_t>(logits.count())};
}

}  // namespace kolo::tensor
