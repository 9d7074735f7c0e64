// Watchdog for providers whose own thread moves the data: detects the end of that thread.
//
// The thread of libfabric's sockets provider (1.17) ends, with a logged warning, when a connection
// receives data of another protocol. Any process that finds the port can cause this: a port scan,
// or a client of a program that listened there before. After that every call succeeds, but no data
// move, and no error is reported. So a rank that sees no completion for a while sends a message to
// itself. Only the provider's thread can deliver it.
//
// Time counts only between calls of look(), and only a limited part of each interval. So the time
// in which a rank computes or its machine is suspended does not count as waiting.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transports/transport.h"

namespace kolo::inline v0::ofi {

class ProgressWatchdog {
 public:
  enum class Verdict {
    kFine,
    kAsk,   // send the message and call asked()
    kDead,  // neither the message nor anything else has arrived
  };

  // Nothing has moved for a tenth of `patience`: kAsk. For all of it after that: kDead.
  explicit ProgressWatchdog(Clock::duration patience) : patience_(patience) {}

  // `done`: number of completed operations so far.
  Verdict look(Clock::time_point now, std::uint64_t done) {
    const auto most = patience_ / kLooks;
    const auto past = std::clamp<Clock::duration>(now - looked_, Clock::duration{0}, most);
    looked_ = now;
    waited_ += past;
    if (done != done_) {
      done_ = done;
      is_asked_ = false;
      waited_ = {};
    }
    if (is_asked_) return waited_ >= patience_ ? Verdict::kDead : Verdict::kFine;
    return waited_ >= patience_ / 10 ? Verdict::kAsk : Verdict::kFine;
  }

  void asked() {
    is_asked_ = true;
    waited_ = {};
  }

 private:
  static constexpr int kLooks = 20;  // looks needed at least for kDead

  const Clock::duration patience_;
  Clock::time_point looked_{};
  Clock::duration waited_{0};
  std::uint64_t done_ = 0;
  bool is_asked_ = false;
};

}  // namespace kolo::inline v0::ofi
