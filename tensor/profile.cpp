#include "tensor/profile.h"

#include <chrono>
#include <utility>

namespace kolo::tensor {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Profile::Profile() : Profile(steady_seconds) {}

void Profile::end_forward(std::size_t index, const Operation& operation) {
  if (index == operations_.size()) operations_.push_back({{operation.kind, operation.parameter}});
  OperationTime& time = operations_.at(index);
  time.forward += since_mark();
  time.operation.flops += operation.flops;
  note(index, false);
}

void Profile::end_backward(std::size_t index) {
  operations_.at(index).backward += since_mark();
  note(index, true);
}

void Profile::note(std::size_t index, bool is_backward) {
  const double began = std::exchange(began_, mark_);
  if (listener_) listener_(index, operations_[index].operation, is_backward, began, mark_);
}

double Profile::since_mark() {
  const double now = now_();
  return now - std::exchange(mark_, now);
}

}  // namespace kolo::tensor
