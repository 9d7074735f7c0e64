#include "transports/cuda/backlog.h"

namespace kolo::inline v0::cuda {

Backlog::~Backlog() {
  for (Event const mark : marks_) {
    if (mark != nullptr) device_.destroy_event(mark);
  }
}

void Backlog::add(Stream stream) {
  if (++since_mark_ < kMarkEvery || pending_ == marks_.size()) return;
  Event& mark = marks_[(oldest_ + pending_) % marks_.size()];
  if (mark == nullptr) mark = device_.make_event();
  device_.record(mark, stream);
  ++pending_;
  since_mark_ = 0;
}

bool Backlog::is_full() {
  if (pending_ < marks_.size()) return false;
  if (!device_.is_done(marks_[oldest_])) return true;
  oldest_ = (oldest_ + 1) % marks_.size();
  --pending_;
  return false;
}

}  // namespace kolo::inline v0::cuda
