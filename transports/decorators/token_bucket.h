// A token bucket as arithmetic on times: when will this segment have passed?
//
// Tokens are bytes; `bytes_per_second` come in each second, at most `burst_bytes` are saved. A
// segment has passed once its bytes have been paid for. Nothing is counted as time goes by: the
// bucket keeps one time, when all that has passed is paid for, as the virtual scheduling algorithm
// of ITU-T I.371 (GCRA) does, so that it is exact, deterministic, and whoever looks late loses
// nothing. Rounding is carried over from segment to segment: the rate is exact in the long run.
//
// A segment takes time to come, too: with its first byte at `first` and its last one at `last`. It
// can leave while it comes (a switch that cuts through), so a bucket that is as fast as the one
// before adds nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transports/transport.h"

namespace kolo::decorators {

// Of a segment: when its first byte moves, and when its last one has.
struct TransitTimes {
  Clock::time_point first;
  Clock::time_point last;

  friend bool operator==(const TransitTimes&, const TransitTimes&) = default;
};

class TokenBucket {
 public:
  // `bytes_per_second` 0: no limit, every segment passes as it comes. Burst 0: a wire, on which
  // every byte takes its time.
  explicit TokenBucket(std::uint64_t bytes_per_second = 0, std::uint64_t burst_bytes = 0);

  // When the next segment leaves that comes at `coming`. In the order of the calls.
  TransitTimes pass(TransitTimes coming, std::size_t bytes);

 private:
  std::uint64_t rate_;
  std::chrono::nanoseconds saved_;  // what a full bucket is worth
  Clock::time_point paid_{};        // when all that passed is paid for
  std::uint64_t carry_ = 0;         // of a nanosecond, in 1 / rate_
};

}  // namespace kolo::decorators
