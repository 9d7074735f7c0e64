// What a rank knows of the failure of its job: one for all communicators that are made from one
// another, so that no call of any passes on a rank where another has failed.
//
// Threading: all of it is safe from several threads.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "transports/error.h"

namespace kolo {

class JobFailure {
 public:
  bool is_known() const { return is_known_.load(std::memory_order_relaxed); }

  // Throws it, where it is known.
  void check() const {
    if (is_known()) [[unlikely]]
      throw cause();
  }

  // Where it is known.
  Error cause() const {
    const std::lock_guard lock(mutex_);
    return *cause_;
  }

  // The cause that was known before, else `cause`, which is known from here on.
  Error learn(const Error& cause) {
    const std::lock_guard lock(mutex_);
    if (!cause_) cause_ = cause;
    is_known_.store(true, std::memory_order_relaxed);
    return *cause_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> cause_;
  std::atomic<bool> is_known_{false};  // who has seen it finds the cause under the lock
};

}  // namespace kolo
