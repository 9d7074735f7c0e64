// Channels to measure over: ranks of inproc held by one thread, and channels that lead nowhere.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/executor/call_header.h"
#include "collectives/executor/executor.h"
#include "transports/transport.h"

namespace kolo::bench {

inline constexpr std::size_t kInterpreterSegment = 64 * 1024;

// All ranks' ends of inproc.
class InprocRanks {
 public:
  explicit InprocRanks(int size);

  Channel& channel(int rank, int peer) {
    return transports_[static_cast<std::size_t>(rank)]->channel(peer);
  }
  // By rank, null for `rank` itself: as an executor wants them.
  std::vector<Channel*> channels(int rank);

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

// Channels of rank `rank` that take no segment and bring none: enough for a plan.
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

// Of an all-reduce of `count` float32 sums in segments of kInterpreterSegment.
CallHeader sum_header(std::size_t count);
Binding binding_of(const float* in, float* out, std::size_t count);

}  // namespace kolo::bench
