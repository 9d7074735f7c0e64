// Calls that run on a communicator and its works, so that kolo_free() can wait for them.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/c/kolo.h"
#include "collectives/engine/fork_generation.h"

namespace kolo::inline v0::c_interface {

// While it lives, this thread runs a function of the caller: kolo_free() must not wait here, since
// the call that runs the function waits for it.
class InCallback {
 public:
  InCallback() { ++depth_; }
  ~InCallback() { --depth_; }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

  static bool is_any() { return depth_ > 0; }

 private:
  static thread_local constinit int depth_;
};

class RunningCalls {
 public:
  enum class Kind : std::uint64_t {
    kCall = 1,
    kMakesGroup = (std::uint64_t{1} << 24) + 1,  // waits for peers without an operation
  };

  void enter(Kind kind) { state_.fetch_add(bits(kind)); }

  // The same for a call on a work handle, which outlives its communicator. Waits for kolo_free() in
  // another thread.
  void enter_work() {
    if ((state_.fetch_add(bits(Kind::kCall)) & kFreed) != 0) [[unlikely]]
      await_end();
  }

  // The last call may free the communicator.
  void leave(Kind kind) noexcept {
    std::uint64_t state = state_.load(std::memory_order_relaxed);
    while ((state & kFreed) == 0) {
      if (state_.compare_exchange_weak(state, state - bits(kind))) return;
    }
    leave_freed(kind);
  }

  bool is_freed() const { return (state_.load(std::memory_order_relaxed) & kFreed) != 0; }

  // Fails the calls that run, waits for them and deletes the handle, to which these calls belong.
  // Inside a callback it does not wait: the last call deletes the handle.
  void end(kolo_communicator* handle) noexcept;

 private:
  static constexpr std::uint64_t kFreed = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kAnyCall = (std::uint64_t{1} << 24) - 1;

  static std::uint64_t bits(Kind kind) { return static_cast<std::uint64_t>(kind); }
  bool has_calls() const { return (state_ & kAnyCall) != 0; }
  bool makes_group() const { return (state_ & ~kFreed & ~kAnyCall) != 0; }
  bool is_in_child() const { return made_in_ != fork_generation(); }

  void fail_calls(kolo_communicator& handle) const noexcept;
  void await_end();
  void leave_freed(Kind kind) noexcept;
  void destroy(kolo_communicator* handle) noexcept;

  // Calls in the low 24 bits; those of them that make groups above; kFreed on top.
  std::atomic<std::uint64_t> state_ = 0;
  const std::uint64_t made_in_ = fork_generation();

  // Guarded by one lock for all communicators. It cannot be a part of the handle, since the last
  // call holds it while it deletes the handle.
  kolo_communicator* left_to_last_call_ = nullptr;
  bool is_destroyed_ = false;
};

}  // namespace kolo::inline v0::c_interface
