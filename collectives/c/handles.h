// Objects behind the handles of the C interface, and the conversion of exceptions to results.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "collectives/c/kolo.h"
#include "collectives/c/kolo_store.h"
#include "collectives/c/running_calls.h"
#include "collectives/communicator.h"
#include "transports/error.h"
#include "transports/rendezvous.h"

namespace kolo::inline v0::c_interface {

struct Failure {
  kolo_result result = KOLO_OK;
  int peer = KOLO_NO_PEER;
  std::string text;
};

// The last failure of a communicator and its works.
class LastFailure {
 public:
  void set(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    failure_ = failure;
  }
  Failure get() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  Failure failure_;
};

// What a communicator shares with its works, which may outlive it.
struct Shared {
  LastFailure last;
  RunningCalls calls;
};

kolo_result result_of(ErrorCode code);

// Stores the failure for this thread, and in `last` unless that is null. Never throws.
kolo_result remember(Failure failure, LastFailure* last) noexcept;
// The same for the exception that is being handled.
kolo_result remember_exception(LastFailure* last) noexcept;

// Runs `body`; an exception becomes a result.
template <typename Body>
kolo_result guarded(LastFailure* last, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return KOLO_OK;
  } catch (...) {
    return remember_exception(last);
  }
}

// Throws std::invalid_argument if the time is below 0.
std::chrono::milliseconds timeout_of(std::int64_t timeout_ms);
// The time from now on; 0 means 30 s.
Deadline deadline_in(std::int64_t timeout_ms);

// Throws Error kUnavailable unless a function of the caller's store returned 0.
void expect_success(int status, const char* function, std::string_view key);

// A caller's string; null becomes empty.
inline std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// Makes the object behind a handle; the caller owns it.
template <typename T, typename... Arguments>
void make(T** handle, Arguments&&... arguments) {
  *handle = std::make_unique<T>(std::forward<Arguments>(arguments)...).release();
}

// Deletes the object behind a caller's handle.
template <typename T>
void end(T* handle) {
  const std::unique_ptr<T> owner(handle);
}

[[noreturn]] inline void refuse(const std::string& text) { throw std::invalid_argument(text); }

// For a number that is not in a caller's enum: "77 is not a kolo_type, such as KOLO_FLOAT32".
[[noreturn]] inline void refuse_number(int given, const char* expected) {
  refuse(std::to_string(given) + " is not a " + expected);
}

// Copy of a caller's struct. Fields that the caller's version lacks are 0.
template <typename Struct>
Struct fields_of(const Struct* given, const char* name) {
  Struct fields{};
  if (given == nullptr) return fields;
  if (given->size < sizeof(std::size_t) || given->size % sizeof(std::size_t) != 0) {
    refuse(std::string(name) + ".size is not set: begin with `" + name +
           " x = {.size = sizeof x};`");
  }
  std::memcpy(static_cast<void*>(&fields), given, std::min(given->size, sizeof(Struct)));
  return fields;
}

}  // namespace kolo::inline v0::c_interface

struct kolo_communicator {
  explicit kolo_communicator(kolo::Communicator made) : communicator(std::move(made)) {}

  // First: callbacks that the communicator's end runs may use it.
  const std::shared_ptr<kolo::c_interface::Shared> shared =
      std::make_shared<kolo::c_interface::Shared>();
  kolo::Communicator communicator;
};

struct kolo_work {
  kolo::Work work;
  std::shared_ptr<kolo::c_interface::Shared> shared;
};

struct kolo_job_store {
  explicit kolo_job_store(std::shared_ptr<kolo::Store> made) : store(std::move(made)) {}

  std::shared_ptr<kolo::Store> store;
};

namespace kolo::inline v0::c_interface {

// Runs `body` as a call on the communicator; an exception becomes a result. Null: `body` refuses
// it.
template <typename Body>
kolo_result counted(const kolo_communicator* communicator, Body&& body,
                    RunningCalls::Kind kind = RunningCalls::Kind::kCall) noexcept {
  if (communicator == nullptr) return guarded(nullptr, std::forward<Body>(body));
  Shared& shared = *communicator->shared;
  shared.calls.enter(kind);
  const kolo_result result = guarded(&shared.last, std::forward<Body>(body));
  shared.calls.leave(kind);
  return result;
}

template <typename Handle>
auto& held(Handle* communicator) {
  if (communicator == nullptr) refuse("the communicator is null");
  if (communicator->shared->calls.is_freed()) [[unlikely]]
    refuse("the communicator was freed");
  return communicator->communicator;
}

// Checks the pointer to a result, and sets the result to null in case the call fails.
template <typename T>
void prepare(T** made, const char* name) {
  if (made == nullptr) refuse(std::string("`") + name + "` is null; the result is stored there");
  *made = nullptr;
}

// `user` must outlive the result.
Reduction reduction(kolo_op op, const std::optional<UserReduceOp>& user);
std::optional<UserReduceOp> user_op(kolo_op op, const kolo_call* call);

// Type and length of the elements of a call.
struct Elements {
  Elements(kolo_type type, const std::optional<UserReduceOp>& user);

  Buffer buffer(void* data, std::size_t count) const;
  ConstBuffer buffer(const void* data, std::size_t count) const;

  ElementType type;
  std::uint32_t user_bytes = 0;
};

// One call of an operation: its communicator and options, and the place for its work handle.
class Call {
  kolo_work** place_;  // first: it is cleared even if the other arguments are refused

 public:
  // `work` null: the call returns when the operation is done.
  Call(kolo_communicator* communicator, const kolo_call* call, kolo_op op, kolo_work** work);

  Communicator& world;
  CallOptions options;

  bool is_async() const { return place_ != nullptr; }
  void set_work(Work work);

 private:
  std::unique_ptr<kolo_work> made_;  // made before the operation is issued, as memory may run out
};

}  // namespace kolo::inline v0::c_interface
