// Token bucket as arithmetic on times: computes when a segment has passed.
//
// Tokens are bytes. `bytes_per_second` arrive in each second, and at most `burst_bytes` are saved.
// A segment has passed once its bytes have been paid for. The bucket keeps a single time: when all
// passed segments are paid for, as in the virtual scheduling algorithm of ITU-T I.371 (GCRA). So it
// is exact and deterministic, and late calls lose no rate. Rounding errors are carried over from
// segment to segment, so the rate is exact in the long run.
//
// A segment also takes time to arrive: its first byte comes at `first`, its last one at `last`. It
// can leave while it arrives (cut-through), so a second bucket of the same rate adds no time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

namespace kolo::inline v0::decorators {

// Times of a segment's first and last byte at some place.
struct TransitTimes {
  Clock::time_point first;
  Clock::time_point last;

  friend bool operator==(const TransitTimes&, const TransitTimes&) = default;
};

class TokenBucket {
 public:
  // `bytes_per_second` 0: no limit, every segment passes as it arrives. Burst 0: a wire, on which
  // every byte takes its time.
  explicit TokenBucket(std::uint64_t bytes_per_second = 0, std::uint64_t burst_bytes = 0);

  // Returns when the next segment leaves if it arrives at `coming`. Call in order of arrival.
  TransitTimes pass(TransitTimes coming, std::size_t bytes);

 private:
  std::uint64_t rate_;
  std::chrono::nanoseconds saved_;  // value of a full bucket
  Clock::time_point paid_{};        // when all passed segments are paid for
  std::uint64_t carry_ = 0;         // rounding rest, in 1 / rate_ nanoseconds
};

}  // namespace kolo::inline v0::decorators
