// Failed jobs that this process knows, by the ids of their stores.
//
// After a failure a survivor may make a new communicator at the same address. The old store can
// linger there, because other ranks still use it. A known id tells the old job from the new one.
//
// Threading: all methods are thread-safe.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace kolo::inline v0 {

class PastJobs {
 public:
  void add(std::string id) {
    const std::lock_guard lock(mutex_);
    if (!id.empty()) ids_.insert(std::move(id));
  }
  bool has(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    return ids_.count(id) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> ids_;
};

}  // namespace kolo::inline v0
