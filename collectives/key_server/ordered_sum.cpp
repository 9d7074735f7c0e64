#include "collectives/key_server/ordered_sum.h"

#include <algorithm>
#include <utility>

#include "collectives/element.h"

namespace kolo::inline v0::key_server {

void OrderedSum::begin(std::size_t worker, std::shared_ptr<float[]> memory, double samples) {
  slots_[worker] = {State::kArriving, std::move(memory), 0, 0, samples};
}

void OrderedSum::leave_out(std::size_t worker) { slots_[worker] = {State::kLeftOut, {}, 0, 0, 0}; }

bool OrderedSum::is_complete(std::size_t worker) const {
  return slots_[worker].state == State::kArriving && slots_[worker].arrived == count_;
}

std::size_t OrderedSum::complete() const {
  std::size_t number = 0;
  for (std::size_t worker = 0; worker < slots_.size(); ++worker) number += is_complete(worker);
  return number;
}

bool OrderedSum::is_decided() const {
  return std::ranges::all_of(slots_, [this](const Slot& slot) {
    return slot.state == State::kLeftOut ||
           (slot.state == State::kArriving && slot.arrived == count_);
  });
}

void OrderedSum::advance() {
  static const ReduceKernel add = reduce_kernel(ElementType::kFloat32, ReduceOp::kSum);
  std::size_t limit = count_;
  bool is_first = true;
  for (Slot& slot : slots_) {
    if (slot.state == State::kLeftOut) continue;
    if (slot.state == State::kAwaited) return;
    const std::size_t until = std::min(slot.arrived, limit);
    if (std::exchange(is_first, false)) {
      sum_ = slot.memory.get();
    } else if (until > slot.added) {
      float* const sum = sum_ + slot.added;
      add(sum, nullptr, sum, slot.memory.get() + slot.added, until - slot.added, 1);
    }
    slot.added = limit = until;
    if (slot.added == count_ && slot.memory.get() != sum_) slot.memory.reset();
  }
}

double OrderedSum::samples() const {
  double sum = 0;
  for (const Slot& slot : slots_) sum += slot.samples;
  return sum;
}

}  // namespace kolo::inline v0::key_server
