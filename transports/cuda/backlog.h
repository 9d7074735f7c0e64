// Bound on the work that a rank's streams have been given and may not have done.
//
// The hardware queue of a stream takes about 1000 commands. A call that finds it full blocks in the
// driver until the stream continues. Meanwhile the host cannot look after its peers, and ranks of
// one process can block each other. So beyond two marks of kMarkEvery segments each, the channels
// return "not now". A segment is three or four commands. All channels of a rank count together,
// since they share the caller's stream.
//
// Cost: one event per kMarkEvery segments. Threading: one thread at a time.
#pragma once

#include <array>
#include <cstddef>

#include "transports/cuda/device.h"

namespace kolo::inline v0::cuda {

class Backlog {
 public:
  static constexpr int kMarkEvery = 96;

  explicit Backlog(const Device& device) : device_(device) {}
  ~Backlog();
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  // Counts one more segment on this stream. Error kSystem.
  void add(Stream stream);
  // True while the streams are more than two marks behind the host: try again later.
  bool is_full();

 private:
  const Device& device_;
  std::array<Event, 2> marks_{};  // made at first use
  std::size_t oldest_ = 0;
  std::size_t pending_ = 0;  // marks that were recorded and not found done
  int since_mark_ = 0;       // segments
};

}  // namespace kolo::inline v0::cuda
