#include "transports/cuda/batches.h"

#include <exception>

#include "transports/base/check.h"

namespace kolo::cuda {

bool Batches::begin(Stream stream, bool wants_to_know) {
  check(!is_begun_, "begin() before the batch begun last has ended");
  if (event_ == nullptr) event_ = device_.make_event();
  const bool is_other = has_event_ && stream != stream_;
  const bool is_done = has_event_ && (is_other || wants_to_know) && device_.is_done(event_);
  if (is_other && !is_done) device_.wait_for(event_, stream);
  stream_ = stream;
  is_begun_ = true;
  return is_done;
}

void Batches::end() {
  device_.record(event_, stream_);
  has_event_ = true;
  is_begun_ = false;
}

void Batches::require(Stream stream) const {
  check(is_begun_ && stream == stream_,
        "call a stream's operations between begin() and end() of the same stream");
}

void Batches::close() noexcept {
  if (!is_begun_) return;
  try {
    device_.record(event_, stream_);
    has_event_ = true;
  } catch (const std::exception&) {
    is_lost_ = true;
  }
}

bool Batches::has_finished() const noexcept {
  return !is_lost_ && (!has_event_ || device_.is_done(event_));
}

}  // namespace kolo::cuda
