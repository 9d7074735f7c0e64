// Cache of issued calls, for the fast path of repeated calls.
//
// A call with default options is identified by collective, type, operation, root and count. A
// message is identified by its peer and direction instead of operation and root. The first such
// call computes all that follows from these, the communicator and its rank: validity, algorithm,
// compiled schedule, header, extents of the buffers. A repeated call only checks its buffers
// (Extents::fit).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "collectives/engine/checked_call.h"
#include "collectives/executor/call_header.h"

namespace kolo::inline v0 {

class Executor;

// A key has no room for lists, so only "an equal server in every rank" is cacheable.
inline bool is_cacheable(const ServerPlan& plan) {
  return plan.everywhere && plan.servers.empty() && plan.parts.empty();
}

// The direction of operations that are not messages.
inline constexpr std::size_t kNoDirection = static_cast<std::size_t>(-1);

// Two words, since it is compared for every call.
class CallKey {
 public:
  CallKey() = default;
  CallKey(Collective collective, ElementType type, ReduceOp op, int root, std::size_t count)
      : what_(static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(type) << 8 |
              static_cast<std::uint64_t>(op) << 16 |
              static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32),
        count_(count) {}

  // Key of a message to `other`, or from it if this rank receives.
  static CallKey of_message(ElementType type, int other, bool receives, std::size_t count) {
    CallKey key(Collective::kMessage, type, ReduceOp::kSum, other, count);
    key.what_ |= static_cast<std::uint64_t>(receives) << 24;
    return key;
  }

  friend bool operator==(CallKey, CallKey) = default;

  // Index from 0 to 2^bits - 1, by Fibonacci hashing.
  std::size_t place(int bits) const {
    return static_cast<std::size_t>(((what_ << 24 ^ count_) * 0x9e3779b97f4a7c15U) >> (64 - bits));
  }

 private:
  std::uint64_t what_ = 0;
  std::uint64_t count_ = 0;
};

struct CachedCall {
  CallKey key;
  Executor* executor = nullptr;  // null: empty entry
  CallHeader header;             // without its sequence
  Extents extents;
  std::size_t direction = kNoDirection;  // messages only
};

// Direct-mapped cache; a new call replaces the one with the same index. Not thread-safe.
class CallCache {
 public:
  // Null: not cached.
  const CachedCall* find(CallKey key) const {
    const CachedCall& known = calls_[key.place(kBits)];
    return known.executor != nullptr && known.key == key ? &known : nullptr;
  }

  void keep(const CachedCall& call) { calls_[call.key.place(kBits)] = call; }

 private:
  static constexpr int kBits = 5;
  std::array<CachedCall, std::size_t{1} << kBits> calls_{};
};

}  // namespace kolo::inline v0
