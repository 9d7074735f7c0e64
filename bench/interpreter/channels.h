// Channels for the interpreter benchmark: all ranks of inproc in one thread, and channels without
// data.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/executor/call_header.h"
#include "collectives/executor/executor.h"
#include "transports/transport.h"

namespace kolo::bench {

inline constexpr std::size_t kInterpreterSegment = 64 * 1024;

// The inproc transports of all ranks.
class InprocRanks {
 public:
  explicit InprocRanks(int size);

  Channel& channel(int rank, int peer) {
    return transports_[static_cast<std::size_t>(rank)]->channel(peer);
  }
  // By rank, null for `rank` itself, as an executor expects.
  std::vector<Channel*> channels(int rank);

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Channels of rank `rank` that accept and deliver no segments; sufficient for a plan.
class NullChannels {
 public:
  NullChannels(int rank, int size);
  ~NullChannels();
  NullChannels(const NullChannels&) = delete;
  NullChannels& operator=(const NullChannels&) = delete;

  const std::vector<Channel*>& channels() const { return channels_; }

 private:
  std::vector<std::unique_ptr<Channel>> owned_;
  std::vector<Channel*> channels_;
};

// Header and binding of an all-reduce of `count` float32 sums in segments of kInterpreterSegment.
CallHeader sum_header(std::size_t count);
Binding binding_of(const float* in, float* out, std::size_t count);

}  // namespace kolo::bench
