#pragma once

// Profile: seconds of each operation in forward and in backward, summed over training passes.
//
//   Profile profile;
//   network.set_profile(&profile);  // training passes count from now on
//   ...
//   for (const OperationTime& one : profile.operations()) ...
//
// The tape reads the clock after each operation. It also reads it around the hooks: their time is
// communication, which counts for no operation. That is all the cost; without a profile there is
// none. One thread at a time.

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/arena.h"

namespace kolo::tensor {

// What a node of the tape computes.
struct Operation {
  std::string_view kind;       // "conv2d"; not copied
  ParameterId parameter = -1;  // one of the layer's; below 0: it has none
  // Floating-point operations of forward and backward, two for each product in a sum, padding
  // included; 0: not counted.
  double flops = 0;
};

struct OperationTime {
  Operation operation;  // its flops are sums, as the seconds are
  double forward = 0;   // seconds
  double backward = 0;
};

class Profile {
 public:
  // Seconds of a clock. Tests replace it.
  using Now = std::function<double()>;
  Profile();
  explicit Profile(Now now) : now_(std::move(now)) {}

  // In the order of forward, which must be the same in all passes.
  const std::vector<OperationTime>& operations() const { return operations_; }

  // Called at the end of each operation of a pass: its index in the order of forward, whether in
  // backward, and when it began and ended by the clock, hooks included.
  using Listener = std::function<void(std::size_t index, const Operation& operation,
                                      bool is_backward, double begin, double end)>;
  void set_listener(Listener listener) { listener_ = std::move(listener); }

  // For the tape. `index` counts the operations of a pass in the order of forward.
  void begin_pass() { mark_ = began_ = now_(); }
  void end_forward(std::size_t index, const Operation& operation);
  void end_backward(std::size_t index);
  void pause() { paused_ = now_(); }
  void resume() { mark_ += now_() - paused_; }

 private:
  double since_mark();
  // Tells the listener, and begins the next operation.
  void note(std::size_t index, bool is_backward);

  Now now_;
  Listener listener_;
  std::vector<OperationTime> operations_;
  double mark_ = 0;  // when the current operation began, plus the pauses since
  double paused_ = 0;
  double began_ = 0;  // when the current operation began
};

}  // namespace kolo::tensor
