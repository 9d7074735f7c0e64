// Which stream may give work to a channel now, and when the work of the last one is done.
//
// A stream may be destroyed between two batches: so a batch ends with an event, which the next one
// waits for where it is another stream's, and which the end of the channel asks. The first batch
// makes it: a channel that is being made calls nothing that can fail.
//
// Threading: one at a time.
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

  // True where the work of the batches before is known to be done: asked for where the caller wants
  // to know, or another stream would have to wait for it. Not of a stream that is being captured.
  // std::invalid_argument where the batch before has not ended.
  bool begin(Stream stream, bool wants_to_know);
  void end();

  bool is_begun() const { return is_begun_; }
  // std::invalid_argument unless a batch of this stream is open.
  void require(Stream stream) const;

  // No batch comes any more; one that is open ends here.
  void close() noexcept;
  bool has_finished() const noexcept;
  // Whether the batches that ended before are done. From any thread that knows of one's end.
  bool has_come() const noexcept { return device_.is_done(event_); }

 private:
  const Device& device_;
  Event event_ = nullptr;
  Stream stream_ = nullptr;  // of the batch that is open or was last
  bool is_begun_ = false;
  bool has_event_ = false;  // it has been recorded
  bool is_lost_ = false;    // a stream destroyed in the middle of a batch: its end cannot be seen
};

}  // namespace kolo::cuda
