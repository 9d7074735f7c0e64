// Driver calls that may wait for all streams of a context, put off while a stream may wait for a
// peer: frees, unregistrations and closings of mappings.
//
// Until such a call returns, its thread makes no progress, and other ranks of the process may be
// unable to enqueue the work that ends the wait. So a call runs only while all workers are idle. No
// worker can begin to wait meanwhile, since that needs the lock.
//
// A process has one object for each driver. Threading: safe from any thread.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace kolo::inline v0::cuda {

class DeferredFrees {
 public:
  // Work on streams that may wait for a peer.
  class Worker {
   public:
    // Called from any thread, with the lock held.
    virtual bool is_idle() noexcept = 0;

   protected:
    ~Worker() = default;
  };

  // A worker holds it while it changes what is_idle() reads. The calls run under it, so a thread
  // may lock it again.
  using Lock = std::unique_lock<std::recursive_mutex>;
  Lock lock() { return Lock(mutex_); }

  void join(Worker& worker);
  // Runs the calls that only this worker held up.
  void leave(Worker& worker) noexcept;

  // Runs the call now, or later in another call of these functions. Calls run in the order given.
  void run(std::function<void()> call) noexcept;
  // Runs all calls if no worker is at work. True if none is left.
  bool run_all() noexcept;

 private:
  std::recursive_mutex mutex_;
  std::vector<Worker*> workers_;
  std::deque<std::function<void()>> calls_;
};

}  // namespace kolo::inline v0::cuda
