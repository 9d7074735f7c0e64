// How to wait for a peer: spin, yield, or sleep.
//
// Spinning is fastest (0.1 us to notice) as long as the peer has a core of its own; where ranks
// share cores it steals the very time that the peer needs, so there the waiter yields. Either way,
// whoever has waited for long sleeps: the wake-up (some 30 us) is little beside the time already
// spent, and the core is free for others.
//
//   spin    while there is a core for every local rank    for 50 us; then yield, up to
//                                                         Settings::spin_us; then sleep
//   yield   more ranks than cores                         up to Settings::spin_us, then sleep
//   block   asked for by Settings::wait                   sleep at once
//
// A waiter that comes back more than a millisecond late has lost its core to somebody who computes
// there, such as the threads of OpenMP. Where that happens in every fourth wait it sleeps, for 16
// times what it lost (up to a second), where it would yield or spin for more than 5 us: a yield
// gives away a whole time slice (4 ms), while a sleeper is run soon after it is woken.
//
// Sleeping is arm, poll of the transport's descriptor and of the store's, disarm: a segment, a lost
// peer and a failure posted anywhere all wake it. Where a transport has no descriptor (libfabric's
// shm), a sleep is a nap of a sixteenth of the time waited, 50 us to 1 ms.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "transports/posix/event.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"
#include "transports/transport.h"

namespace kolo {

// `settings.wait` where it is not kAuto; else spin where `local_ranks` fit on `local_cores`, yield
// otherwise.
WaitKind choose_wait(int local_ranks, int local_cores, WaitKind asked = WaitKind::kAuto);

// Cores that this process may really use: its affinity mask, bounded by its cgroup's quota; at
// least 1.
int usable_cores();

// One for each thread that waits; not shared. Typical use:
//
//   while (!done) {
//     if (transport.progress(), step()) policy.moved();
//     else if (!policy.pause(transport, store, deadline)) throw Error(ErrorCode::kDeadline, ...);
//   }
class WaitPolicy {
 public:
  // For `local_ranks` ranks that share `local_cores` (placement.h finds both; 0: usable_cores()).
  explicit WaitPolicy(int local_ranks, int local_cores = 0,
                      const Settings& settings = read_settings());

  WaitKind kind() const { return kind_; }

  // Something moved, or something else than waiting was done: the next pause is short again. (Time
  // that lies between two pauses without it counts as lost to others.)
  void moved() {
    pauses_ = 0;
    until_look_ = stride_;
    is_long_ = has_lost_ = false;
    since_ = {};
  }

  // Where pauses are counted from now on, so that they can be told apart by whom they are for;
  // must outlive the policy, or the next call.
  void count_into(WaitStatistics& counts) { counts_ = &counts; }

  // Nothing moved: waits a little, the longer the more often it is called in a row. False once the
  // deadline has passed. Error kAborted with the text of a failure that was posted in the store.
  // Spins where spin() does; else clock and store are asked, and one may yield or sleep.
  bool pause(Transport& transport, Store& store, Deadline deadline);

  // For who does not wait, and asks again: one look at the clock, and now and then at the store.
  // False once the deadline has passed; Error kAborted where another rank has failed.
  bool is_in_time(Store& store, Deadline deadline);

  // A pause of some 20 ns on the core, which asks neither clock, store nor kernel. False, and
  // nothing done, where it is time to: then pause().
  bool spin();

  // Ends the sleep of a pause under way, or else makes the next one return at once. From any
  // thread, for who has given the waiter more to do; a few ns where nobody sleeps.
  void wake();

 private:
  WaitStatistics& counts() { return counts_ == nullptr ? own_counts_ : *counts_; }
  void count_pause();
  void ask_store(Store& store, Clock::time_point now);
  bool look_up(Store& store, Deadline deadline);
  void notice_loss(Clock::time_point now, Clock::duration away);
  void sleep(Transport& transport, Store& store, Deadline deadline);
  Clock::duration nap() const;

  WaitKind kind_;
  WaitStatistics own_counts_;
  WaitStatistics* counts_ = nullptr;  // null: own_counts_
  std::chrono::microseconds spin_;
  std::uint64_t pauses_ = 0;
  unsigned stride_;           // spins from one look at clock and store to the next
  unsigned until_look_ = 0;   // those that are left
  bool is_long_ = false;      // this wait has outlasted what a waiter may keep its core for
  bool has_lost_ = false;     // the core, in this wait
  double loss_rate_ = 0;      // losses of the core to others, per wait
  bool is_cautious_ = false;  // others compute on this core: it is left to them
  Clock::duration caution_{0};
  Clock::time_point cautious_until_{};
  Clock::time_point since_{};
  Clock::time_point looked_{};  // the latest look in this wait
  std::uint64_t looked_pauses_ = 0;
  Clock::time_point asked_store_{};
  posix::Event bell_;
  std::atomic<bool> is_asleep_{false};
  std::atomic<bool> is_woken_{false};
};

}  // namespace kolo
