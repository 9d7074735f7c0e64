// Order of a channel's batches of work on caller streams: one open batch at a time, each after the
// one before.
//
// A stream may be destroyed between two batches. So each batch ends with an event. The next batch
// waits for that event if it is on another stream, and the end of the channel queries it. The first
// batch creates the event, since the constructor must not call anything that can fail.
//
// Threading: one thread at a time.
#pragma once

#include "transports/cuda/device.h"

namespace kolo::cuda {

class Batches {
 public:
  explicit Batches(const Device& device) : device_(device) {}
  ~Batches() {
    if (event_ != nullptr) device_.destroy_event(event_);
  }
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Opens a batch. True if the work of all earlier batches is known to be done. That is queried if
  // `wants_to_know`, or if another stream would have to wait for it. Not for a stream that is being
  // captured. std::invalid_argument if the batch before has not ended.
  bool begin(Stream stream, bool wants_to_know);
  void end();

  bool is_begun() const { return is_begun_; }
  // std::invalid_argument unless a batch on this stream is open.
  void require(Stream stream) const;

  // Ends an open batch. No batch may follow.
  void close() noexcept;
  bool has_finished() const noexcept;
  // True if all ended batches are done. Safe from any thread that knows of the last end.
  bool has_come() const noexcept { return device_.is_done(event_); }

 private:
  const Device& device_;
  Event event_ = nullptr;
  Stream stream_ = nullptr;  // of the open batch, or of the last one
  bool is_begun_ = false;
  bool has_event_ = false;  // the event has been recorded
  bool is_lost_ = false;    // the stream was destroyed inside a batch: its end is unknown
};

}  // namespace kolo::cuda
