#include "tensor/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kolo::tensor {

namespace {

// Runs the model on one image, shapes only.
void run_dry(Model& model, Tape& tape, const Shape& image) {
  const Value logits =
      model.forward(tape, tape.input(Tensor::outline({1, image[0], image[1], image[2]})));
  if (logits->data.shape().rank() != 2) {
    throw std::invalid_argument(fmt::format("a model returns logits of shape N x classes, not {}",
                                            logits->data.shape().text()));
  }
}

std::int64_t real_labels(std::span<const std::int32_t> labels) {
  return std::count_if(labels.begin(), labels.end(), [](std::int32_t l) { return l >= 0; });
}

}  // namespace

Network::Network(std::unique_ptr<Model> model, Parameters parameters, const Shape& image,
                 std::unique_ptr<Backend> backend, std::uint64_t seed)
    : model_(std::move(model)),
      parameters_(std::move(parameters)),
      image_(image),
      backend_(std::move(backend)) {
  if (image_.rank() != 3) {
    throw std::invalid_argument(fmt::format("an image has shape H x W x C, not {}", image_.text()));
  }
  Tape tape(nullptr, parameters_, pool_, Mode::dry);
  run_dry(*model_, tape, image_);
  fewest_normalised_ = tape.fewest_normalised();
  const std::vector<ParameterId> order(tape.uses().rbegin(), tape.uses().rend());
  parameters_.lay_out(order);
  parameters_.initialize(seed);
}

Network::~Network() = default;

Outcome Network::forward(const Batch& batch, Mode mode, const UseHook& before_use) {
  const auto count = static_cast<std::int64_t>(batch.labels.size());
  if (count < 1) throw std::invalid_argument("a batch needs at least one sample");
  const Shape shape{count, image_[0], image_[1], image_[2]};
  if (static_cast<std::int64_t>(batch.images.size()) != shape.count()) {
    throw std::invalid_argument(
        fmt::format("a batch of {} labels needs images of shape {}, got {} numbers", count,
                    shape.text(), batch.images.size()));
  }
  backend_->enter();
  logits_.reset();
  tape_ = std::make_unique<Tape>(backend_.get(), parameters_, pool_, mode, before_use, profile_);
  // const_cast is safe: a leaf that needs no gradient is only read.
  Value images = tape_->input(Tensor::borrow(const_cast<float*>(batch.images.data()), shape));
  logits_ = model_->forward(*tape_, std::move(images));
  const double divisor =
      batch.divisor > 0 ? batch.divisor
                        : static_cast<double>(std::max<std::int64_t>(1, real_labels(batch.labels)));
  return softmax_cross_entropy(*tape_, logits_, batch.labels, divisor, batch.label_smoothing);
}

void Network::backward(const GradientHook& hook) {
  if (tape_ == nullptr)
    throw std::invalid_argument("backward without a training forward before it");
  backend_->enter();
  tape_->backward(hook);
}

std::span<const float> Network::logits() const {
  if (logits_ == nullptr) return {};
  return {logits_->data.data(), static_cast<std::size_t>(logits_->data.count())};
}

}  // namespace kolo::tensor
