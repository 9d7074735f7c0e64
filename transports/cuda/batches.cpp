#include "transports/cuda/batches.h"

#include <exception>

#include "transports/base/check.h"

namespace kolo::inline v0::cuda {

Batches::~Batches() {
  device_.frees().leave(*this);
  if (event_ != nullptr) device_.destroy_event(event_);
}

bool Batches::begin(Stream stream, bool wants_to_know) {
  check(!is_begun_, "begin() before the batch begun last has ended");
  if (event_ == nullptr) event_ = device_.make_event();
  const bool is_other = has_event_ && stream != stream_;
  const bool is_done = has_event_ && (is_other || wants_to_know) && device_.is_done(event_);
  device_.frees().run_all();
  if (is_other && !is_done) device_.wait_for(event_, stream);
  const auto lock = device_.frees().lock();
  stream_ = stream;
  is_begun_ = true;
  has_waits_ = false;
  return is_done;
}

void Batches::set_enqueuing(bool is_enqueuing) {
  const auto lock = device_.frees().lock();
  has_waits_ = true;
  is_marked_ = false;
  is_enqueuing_ = is_enqueuing;
}

void Batches::end() {
  device_.record(event_, stream_);
  const auto lock = device_.frees().lock();
  has_event_ = true;
  is_begun_ = false;
}

void Batches::require(Stream stream) const {
  check(is_begun_ && stream == stream_,
        "call a stream's operations between begin() and end() of the same stream");
}

void Batches::close() noexcept {
  const auto lock = device_.frees().lock();
  if (!is_begun_) return;
  try {
    device_.record(event_, stream_);
    has_event_ = true;
    has_waits_ = false;
  } catch (const std::exception&) {
    is_lost_ = true;
  }
}

bool Batches::has_finished() const noexcept {
  return !is_lost_ && (!has_event_ || device_.is_done(event_));
}

bool Batches::is_idle() noexcept {
  if (is_enqueuing_) return false;
  if (!is_begun_ || !has_waits_) return has_finished();
  try {
    if (!is_marked_) device_.record(event_, stream_);
    is_marked_ = true;
  } catch (const std::exception&) {
    return false;
  }
  return !is_lost_ && device_.is_done(event_);
}

}  // namespace kolo::inline v0::cuda
