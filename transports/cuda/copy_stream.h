// Device stream for copies between host and device. No work on it waits for a peer, so each copy is
// done soon.
//
// Threading: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

class CopyStream {
 public:
  explicit CopyStream(const Device& device)
      : device_(device), end_(device.make_event()), stream_(make_stream()) {}
  ~CopyStream() {
    device_.destroy_stream(stream_);
    device_.destroy_event(end_);
  }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // Copies, then writes `value` to `word`.
  void copy(void* to, const void* from, std::size_t bytes, Address word, std::uint64_t value) {
    is_used_ = true;
    device_.copy(to, from, bytes, stream_);
    device_.run(write_word(word, value), stream_);
  }

  // No copies may follow.
  void close() noexcept {
    if (!is_used_) return;
    try {
      device_.record(end_, stream_);
    } catch (const std::exception&) {
      is_lost_ = true;
    }
  }
  bool has_finished() const noexcept { return !is_lost_ && (!is_used_ || device_.is_done(end_)); }

 private:
  Stream make_stream() {
    try {
      return device_.make_stream();
    } catch (...) {
      device_.destroy_event(end_);
      throw;
    }
  }

  const Device& device_;
  const Event end_;
  const Stream stream_;
  bool is_used_ = false;
  bool is_lost_ = false;
};

}  // namespace kolo::inline v0::cuda
