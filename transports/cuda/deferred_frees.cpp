#include "transports/cuda/deferred_frees.h"

#include <algorithm>
#include <utility>

namespace kolo::inline v0::cuda {

void DeferredFrees::join(Worker& worker) {
  const Lock lock(mutex_);
  workers_.push_back(&worker);
}

void DeferredFrees::leave(Worker& worker) noexcept {
  const Lock lock(mutex_);
  std::erase(workers_, &worker);
  run_all();
}

void DeferredFrees::run(std::function<void()> call) noexcept {
  const Lock lock(mutex_);
  calls_.push_back(std::move(call));
  run_all();
}

// A call may add another one, which then runs inside it.
bool DeferredFrees::run_all() noexcept {
  const Lock lock(mutex_);
  if (calls_.empty()) return true;
  const bool is_quiet =
      std::ranges::all_of(workers_, [](Worker* worker) { return worker->is_idle(); });
  if (!is_quiet) return false;
  while (!calls_.empty()) {
    const auto call = std::move(calls_.front());
    calls_.pop_front();
    call();
  }
  return true;
}

}  // namespace kolo::inline v0::cuda
