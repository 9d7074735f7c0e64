// The end of a communicator of the C interface while calls of other threads run on it.
//
// One atomic word counts the calls, so a call costs two atomic operations. kolo_free() sets its top
// bit. From then on a call that leaves takes the lock, and kolo_free() waits under it.
#include "collectives/c/running_calls.h"

#include <condition_variable>
#include <mutex>

#include "collectives/c/handles.h"

namespace kolo::inline v0::c_interface {

namespace {

// Of all communicators: a call that leaves must touch nothing of a handle that may be gone.
struct Ends {
  std::mutex mutex;
  std::condition_variable changed;
};

Ends& ends() {
  static Ends all;
  return all;
}

constexpr const char* kReason =
    "the communicator was freed during this call: let all calls return before kolo_free()";

}  // namespace

thread_local constinit int InCallback::depth_ = 0;

void RunningCalls::end(kolo_communicator* handle) noexcept {
  if (is_in_child()) return c_interface::end(handle);  // the parent's threads are not here
  if ((state_.fetch_or(kFreed) & kFreed) != 0) return;
  if (has_calls()) fail_calls(*handle);
  {
    std::unique_lock lock(ends().mutex);
    if (InCallback::is_any() && has_calls()) {
      left_to_last_call_ = handle;
      return;
    }
    ends().changed.wait(lock, [this] { return !has_calls(); });
  }
  destroy(handle);
}

// Ends the operations in flight. A call that makes a group may wait without one.
void RunningCalls::fail_calls(kolo_communicator& handle) const noexcept {
  guarded(&handle.shared->last, [&] {
    handle.communicator.stop(kReason);
    if (makes_group()) handle.communicator.abort(kReason);
  });
}

// Destroying must come first, but not if kolo_free() waits for the call that runs this callback.
void RunningCalls::await_end() {
  if (is_in_child()) return;
  std::unique_lock lock(ends().mutex);
  if (is_destroyed_ || InCallback::is_any()) return;
  state_.fetch_sub(bits(Kind::kCall));
  ends().changed.notify_all();
  ends().changed.wait(lock, [this] { return is_destroyed_; });
  state_.fetch_add(bits(Kind::kCall));
}

void RunningCalls::leave_freed(Kind kind) noexcept {
  kolo_communicator* handle = nullptr;
  {
    const std::lock_guard lock(ends().mutex);
    state_.fetch_sub(bits(kind));
    ends().changed.notify_all();
    if (has_calls() || left_to_last_call_ == nullptr) return;
    handle = std::exchange(left_to_last_call_, nullptr);
  }
  destroy(handle);
}

void RunningCalls::destroy(kolo_communicator* handle) noexcept {
  const std::shared_ptr<Shared> keep = handle->shared;  // this object
  c_interface::end(handle);
  const std::lock_guard lock(ends().mutex);
  is_destroyed_ = true;
  ends().changed.notify_all();
}

}  // namespace kolo::inline v0::c_interface
