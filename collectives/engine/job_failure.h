// The job's failure, as this rank knows it. All communicators made from one another share one
// object, so that no call on any of them succeeds after one has failed on this rank.
//
// Threading: all methods are thread-safe.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "transports/error.h"

namespace kolo::inline v0 {

class JobFailure {
 public:
  bool is_known() const { return is_known_.load(std::memory_order_relaxed); }

  // Throws the failure if it is known.
  void check() const {
    if (is_known()) [[unlikely]]
      throw cause();
  }

  // Precondition: is_known().
  Error cause() const {
    const std::lock_guard lock(mutex_);
    return *cause_;
  }

  // Records `cause` unless a cause is known already. Returns the known one.
  Error learn(const Error& cause) {
    const std::lock_guard lock(mutex_);
    if (!cause_) cause_ = cause;
    is_known_.store(true, std::memory_order_relaxed);
    return *cause_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> cause_;
  std::atomic<bool> is_known_{false};  // cause_ is read under the lock
};

}  // namespace kolo::inline v0
