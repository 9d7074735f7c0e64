// Second device stream of a channel, for work that may have to wait for the peer and must not delay
// the caller's stream.
//
// Threading: one thread at a time, except for is_idle().
#pragma once

#include <exception>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

class SideStream final : private DeferredFrees::Worker {
 public:
  explicit SideStream(const Device& device)
      : device_(device), taken_over_(device.make_event()), done_(make_done()) {
    try {
      stream_ = device.make_stream();
    } catch (...) {
      destroy_events();
      throw;
    }
    device_.frees().join(*this);
  }
  ~SideStream() {
    device_.frees().leave(*this);
    device_.destroy_stream(stream_);
    destroy_events();
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // Orders the next work after all current work of the caller's stream.
  Stream after(Stream callers) {
    set_enqueuing(true);
    device_.record(taken_over_, callers);
    device_.wait_for(taken_over_, stream_);
    return stream_;
  }
  // Call after each piece of work: finish() and has_finished() refer to the last mark.
  void mark() {
    device_.record(done_, stream_);
    is_marked_ = true;
    set_enqueuing(false);
  }
  // Makes the caller's stream wait for the last mark.
  void finish(Stream callers) const {
    if (is_marked_) device_.wait_for(done_, callers);
  }
  bool has_finished() const noexcept { return !is_marked_ || device_.is_done(done_); }

 private:
  bool is_idle() noexcept override { return !is_enqueuing_ && has_finished(); }

  void set_enqueuing(bool is_enqueuing) {
    const auto lock = device_.frees().lock();
    is_enqueuing_ = is_enqueuing;
  }

  Event make_done() const {
    try {
      return device_.make_event();
    } catch (...) {
      device_.destroy_event(taken_over_);
      throw;
    }
  }
  void destroy_events() const noexcept {
    device_.destroy_event(done_);
    device_.destroy_event(taken_over_);
  }

  const Device& device_;
  const Event taken_over_;
  const Event done_;
  Stream stream_ = nullptr;
  bool is_marked_ = false;
  bool is_enqueuing_ = false;  // from after() to mark(); changed under the lock of the frees
};

}  // namespace kolo::inline v0::cuda
