// Calls that were issued before: what is known of the next one like it.
//
// A call with default options is told by collective, type, operation, root and count, a message by
// its other end and its direction in the place of operation and root. All that follows from these,
// the communicator and its rank was found when it first ran: that they are valid, the algorithm,
// the compiled schedule, the header, how far the buffers reach. What is left to ask of a repeat is
// whether its buffers will do (Extents::fit).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/engine/checked_call.h"
#include "collectives/executor/call_header.h"

namespace kolo {

class Executor;

// A key has no room for a list of servers.
inline bool is_cacheable(const ServerPlan& plan) { return plan.everywhere && plan.servers.empty(); }

// Of operations that are no messages.
inline constexpr std::size_t kNoDirection = static_cast<std::size_t>(-1);

// In two words, as it is compared for every call.
class CallKey {
 public:
  CallKey() = default;
  CallKey(Collective collective, ElementType type, ReduceOp op, int root, std::size_t count)
      : what_(static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(type) << 8 |
              static_cast<std::uint64_t>(op) << 16 |
              static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32),
        count_(count) {}

  // Of a message: from this rank to `other`, or the other way.
  static CallKey of_message(ElementType type, int other, bool receives, std::size_t count) {
    CallKey key(Collective::kMessage, type, ReduceOp::kSum, other, count);
    key.what_ |= static_cast<std::uint64_t>(receives) << 24;
    return key;
  }

  friend bool operator==(CallKey, CallKey) = default;

  // 0 to 2^bits - 1, by Fibonacci hashing.
  std::size_t place(int bits) const {
    return static_cast<std::size_t>(((what_ << 24 ^ count_) * 0x9e3779b97f4a7c15U) >> (64 - bits));
  }

 private:
  std::uint64_t what_ = 0;
  std::uint64_t count_ = 0;
};

struct CachedCall {
  CallKey key;
  Executor* executor = nullptr;  // null: nothing is known
  CallHeader header;             // but for its sequence
  Extents extents;
  std::size_t direction = kNoDirection;  // of a message
};

// The last ones, each in the place that its key names. Not thread-safe.
class CallCache {
 public:
  // Null where nothing is known of it.
  const CachedCall* find(CallKey key) const {
    const CachedCall& known = calls_[key.place(kBits)];
    return known.executor != nullptr && known.key == key ? &known : nullptr;
  }

  void keep(const CachedCall& call) { calls_[call.key.place(kBits)] = call; }

 private:
  static constexpr int kBits = 5;
  std::array<CachedCall, std::size_t{1} << kBits> calls_{};
};

}  // namespace kolo
