// Sum of the gradients of one key and one iteration, in the order of the workers.
//
// Gradients may arrive in any order and in pieces. Element e of worker w is added when the workers
// before w have element e in the sum, or are left out. So the sum is ((g0 + g1) + g2) ..., whatever
// the order of arrival. It uses the memory of its first gradient.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace kolo::inline v0::key_server {

class OrderedSum {
 public:
  OrderedSum(std::size_t workers, std::size_t count) : slots_(workers), count_(count) {}

  // The gradient of a worker begins to arrive in `memory`, which the sum may overwrite once it has
  // arrived.
  void begin(std::size_t worker, std::shared_ptr<float[]> memory, double samples);
  // Its first `arrived` elements are there.
  void arrive(std::size_t worker, std::size_t arrived) { slots_[worker].arrived = arrived; }
  // The worker gives no gradient.
  void leave_out(std::size_t worker);

  bool is_awaited(std::size_t worker) const { return slots_[worker].state == State::kAwaited; }
  bool is_complete(std::size_t worker) const;
  std::size_t complete() const;  // number of gradients that have arrived completely
  // Every worker's gradient has arrived, or is left out.
  bool is_decided() const;

  // Adds all that has arrived, as far as the order allows.
  void advance();

  // Of a decided sum, after advance(). Null if all workers are left out.
  float* values() const { return sum_; }
  double samples() const;

 private:
  enum class State { kAwaited, kArriving, kLeftOut };
  struct Slot {
    State state = State::kAwaited;
    std::shared_ptr<float[]> memory;
    std::size_t arrived = 0;
    std::size_t added = 0;
    double samples = 0;
  };

  std::vector<Slot> slots_;  // by worker
  std::size_t count_;
  float* sum_ = nullptr;
};

}  // namespace kolo::inline v0::key_server
