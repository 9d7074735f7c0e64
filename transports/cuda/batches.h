// Order of a channel's batches of work on caller streams: one open batch at a time, each after the
// one before. It also knows whether a stream may be waiting for the peer (deferred_frees.h).
//
// A stream may be destroyed between two batches. So each batch ends with an event. The next batch
// waits for that event if it is on another stream, and the end of the channel queries it. The first
// batch creates the event, since the constructor must not call the driver.
//
// Threading: one thread at a time, except for is_idle().
#pragma once

#include <atomic>
#include <cstdint>

#include "transports/cuda/deferred_frees.h"
#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

class Batches final : private DeferredFrees::Worker {
 public:
  explicit Batches(const Device& device) : device_(device) { device_.frees().join(*this); }
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Opens a batch. True if the work of all earlier batches is known to be done. That is queried if
  // `wants_to_know`, or if another stream would have to wait for it. Not for a stream that is being
  // captured. std::invalid_argument if the batch before has not ended.
  bool begin(Stream stream, bool wants_to_know);
  // Makes a stream wait for a word that the peer or this rank's host writes. It is the batch's
  // stream, or one that the end of the batch comes after. `enqueue` makes the driver call.
  template <typename Enqueue>
  void wait(const Enqueue& enqueue);
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
  // No wait of this channel is pending. Inside a batch this takes a first call, which records the
  // event, and a later one.
  bool is_idle() noexcept override;
  void set_enqueuing(bool is_enqueuing);

  const Device& device_;
  Event event_ = nullptr;
  // The rest is changed under the lock of the device's frees.
  Stream stream_ = nullptr;  // of the open batch, or of the last one
  bool is_begun_ = false;
  bool has_event_ = false;     // the event has been recorded at an end
  bool is_lost_ = false;       // the stream was destroyed inside a batch: its end is unknown
  bool has_waits_ = false;     // in the open batch
  bool is_enqueuing_ = false;  // a wait
  bool is_marked_ = false;     // the event has been recorded after the last wait
};

template <typename Enqueue>
void Batches::wait(const Enqueue& enqueue) {
  set_enqueuing(true);
  try {
    enqueue();
  } catch (...) {
    set_enqueuing(false);
    throw;
  }
  set_enqueuing(false);
}

}  // namespace kolo::inline v0::cuda
