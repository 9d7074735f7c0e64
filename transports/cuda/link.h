// Shared memory of a pair of ranks, set up by the bootstrap (bootstrap.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/cuda/driver.h"
#include "transports/cuda/shared_block.h"
#include "transports/transport.h"

namespace kolo::inline v0::cuda {

// All of it outlives the channel.
struct Link {
  int rank = 0;
  int peer = 0;
  bool is_same_process = false;
  bool is_same_device = false;
  Block* own = nullptr;     // in this rank's memory
  Block* theirs = nullptr;  // in the peer's
  Address own_words = 0;    // the two blocks as the device sees them
  Address their_words = 0;
  std::byte* own_slots = nullptr;  // on this rank's device; written by the peer
  std::byte* their_slots = nullptr;
  std::byte* own_captured_slots = nullptr;  // likewise, for captured work
  std::byte* their_captured_slots = nullptr;
  std::byte* mapping = nullptr;  // mapping of the peer's slots, to be closed; null: none
  std::size_t segment_bytes = 0;
  std::uint64_t slots = kMinimumCredit;
};

}  // namespace kolo::inline v0::cuda
