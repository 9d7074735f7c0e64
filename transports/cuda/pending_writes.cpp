#include "transports/cuda/pending_writes.h"

#include <utility>

namespace kolo::inline v0::cuda {

void PendingWrites::release() {
  held_on_.reset();
  flush();
}

void PendingWrites::write(const WordOperation& operation, Stream stream) {
  add(operation, stream);
  if (held_on_ != stream || pending_.size() == kMostWordOperations) flush();
}

void PendingWrites::wait(const WordOperation& operation, Stream stream) {
  add(operation, stream);
  flush();
}

void PendingWrites::add(const WordOperation& operation, Stream stream) {
  if (stream != stream_) flush();
  stream_ = stream;
  pending_.push_back(operation);
}

// A failed call is not repeated: the channel that made it is dead.
void PendingWrites::flush() {
  if (pending_.empty()) return;
  auto operations = std::exchange(pending_, {});
  device_.run(operations, stream_);
  operations.clear();
  pending_ = std::move(operations);  // keeps its memory
}

}  // namespace kolo::inline v0::cuda
