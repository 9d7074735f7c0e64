// Whether a provider whose own thread moves the data still moves any.
//
// libfabric's sockets (1.17) ends that thread, and logs a warning, where what comes on a connection
// is none of its protocol; and whoever finds its port may connect: a port scan, a client of what
// listened there before. From then on every call succeeds, nothing comes or leaves, and nobody is
// told. So a rank that sees nothing move for a while sends a message to itself, which only that
// thread can bring.
//
// Time counts only while somebody looks, and little of it from one look to the next: a rank that
// computes, and a machine that was stopped, have not waited.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transports/transport.h"

namespace kolo::ofi {

class ProgressWatchdog {
 public:
  enum class Verdict {
    kFine,
    kAsk,   // send the message, and say asked()
    kDead,  // it has not come, nor has anything else
  };

  // Nothing has moved for a tenth of `patience`: kAsk; all of it after that: kDead.
  explicit ProgressWatchdog(Clock::duration patience) : patience_(patience) {}

  // `done`: operations that are over, in all.
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
  static constexpr int kLooks = 20;  // so many at least before anything is dead

  const Clock::duration patience_;
  Clock::time_point looked_{};
  Clock::duration waited_{0};
  std::uint64_t done_ = 0;
  bool is_asked_ = false;
};

}  // namespace kolo::ofi
