#include "tensor/autograd.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "tensor/kernels/kernels.h"

namespace kolo::tensor {

Tape::Tape(Backend* backend, Parameters& parameters, Pool& pool, Mode mode, UseHook before_use,
           Profile* profile, SumOverReplicas sum)
    : backend_(backend),
      parameters_(parameters),
      pool_(pool),
      mode_(mode),
      is_used_(parameters.list().size(), false),
      before_use_(std::move(before_use)),
      profile_(mode == Mode::training ? profile : nullptr),
      sum_(mode == Mode::training ? std::move(sum) : SumOverReplicas()) {
  if (profile_ != nullptr) profile_->begin_pass();
}

Value Tape::input(Tensor data) {
  auto value = std::make_shared<ValueState>();
  value->data = std::move(data);
  return value;
}

Value Tape::make(const Shape& shape) {
  auto value = std::make_shared<ValueState>();
  value->data = is_dry() ? Tensor::outline(shape) : Tensor(pool_, shape);
  value->needs_gradient = is_recording();
  return value;
}

void Tape::record(std::unique_ptr<Node> node, const Operation& operation) {
  if (!is_recording()) return;
  if (profile_ != nullptr) profile_->end_forward(nodes_.size(), operation);
  nodes_.push_back(std::move(node));
}

void Tape::use(ParameterId id) {
  const bool is_used = is_used_.at(static_cast<std::size_t>(id));
  if (is_used) {
    throw std::invalid_argument(
        fmt::format("{} is used twice in one forward pass; shared parameters are not supported",
                    parameters_.list()[static_cast<std::size_t>(id)].name));
  }
  is_used_[static_cast<std::size_t>(id)] = true;
  uses_.push_back(id);
  call(before_use_, id);
}

void Tape::backward(const GradientHook& hook) {
  if (nodes_.empty()) {
    throw std::invalid_argument("backward without a training forward before it");
  }
  hook_ = &hook;
  if (profile_ != nullptr) profile_->begin_pass();
  while (!nodes_.empty()) {
    // Remove the node from the tape first: its destruction releases the activations that only it
    // owned.
    const std::unique_ptr<Node> node = std::move(nodes_.back());
    nodes_.pop_back();
    node->backward(*this);
    if (profile_ != nullptr) profile_->end_backward(nodes_.size());
  }
  hook_ = nullptr;
}

void Tape::finished(ParameterId id) {
  if (hook_ != nullptr) call(*hook_, id);
}

void Tape::call(const std::function<void(ParameterId)>& hook, ParameterId id) {
  if (hook) outside_profile([&] { hook(id); });
}

void Tape::sum_over_replicas(std::span<double> values) {
  outside_profile([&] { sum_(values); });
}

void Tape::outside_profile(const std::function<void()>& other) {
  if (profile_ != nullptr) profile_->pause();
  other();
  if (profile_ != nullptr) profile_->resume();
}

Tensor Tape::take_gradient(ValueState& value) {
  std::vector<Tensor> parts = std::exchange(value.gradients, {});
  if (parts.empty()) throw std::logic_error("a recorded value got no gradient: it was not used");
  Tensor sum = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Tensor next(pool_, sum.shape());
    backend_->add_forward(sum, parts[i], false, next);
    sum = std::move(next);
  }
  return sum;
}

}  // namespace kolo::tensor
