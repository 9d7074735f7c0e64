// Words that a rank's streams write for its peers. Between hold() and release() the writes on one
// stream are held back, and go to the driver in one call with the next wait. A call costs about a
// microsecond of host time.
//
// The order on a stream stays as enqueued. So the caller must flush() before other work on the
// stream, or peers see the word only after that work. It must also flush before its host waits for
// a peer, which may wait for the word.
//
// All channels of a rank share one object, since a wait on one channel must come after the writes
// on the others. Threading: one thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

class PendingWrites {
 public:
  explicit PendingWrites(const Device& device) : device_(device) {}

  void hold(Stream stream) { held_on_ = stream; }
  void release();  // flushes

  void write(const WordOperation& operation, Stream stream);
  // After the writes that are held back.
  void wait(const WordOperation& operation, Stream stream);
  void flush();

 private:
  void add(const WordOperation& operation, Stream stream);

  const Device& device_;
  std::optional<Stream> held_on_;
  std::vector<WordOperation> pending_;
  Stream stream_ = nullptr;  // of pending_
};

}  // namespace kolo::inline v0::cuda
