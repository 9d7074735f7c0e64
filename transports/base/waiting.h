// Wait policy: spin, yield or sleep until a peer moves.
//
// Spinning is fastest (0.1 us to notice) while the peer has a core of its own. If ranks share cores
// (oversubscription), spinning takes the time that the peer needs, so the waiter yields. After a
// long wait both sleep: the wake-up (about 30 us) is short compared with the time already spent,
// and the core is free for others.
//
//   spin    a core for every local rank    for 50 us; then yield, up to Settings::spin; then sleep
//   yield   more ranks than cores          up to Settings::spin, then sleep
//   block   by Settings::wait              sleep at once
//
// Ranks that spin may still share a core: without binding, the kernel may leave two ranks on one.
// If the transport knows that the awaited peer runs on this core, the waiter yields at its first
// look at the clock. Otherwise it would spin there for 50 us in vain.
//
// Preemption: a waiter that returns more than a millisecond late has lost its core to another
// computing thread, such as an OpenMP thread. If that happens in one of four recent waits, the
// waiter sleeps where it would yield, or spin for more than 5 us. It does so for 16 times the lost
// time, up to a second. A yield gives away a whole time slice (4 ms), while a sleeping thread runs
// soon after its wake-up.
//
// Sleeping is arm, poll of the descriptors of transport and store, disarm. A segment, a lost peer
// and a failure posted by any rank wake it. If a transport has no descriptor (libfabric's shm), the
// waiter naps for a sixteenth of the time waited, 50 us to 1 ms.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "transports/posix/event.h"
#include "transports/rendezvous.h"
#include "transports/settings.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// `asked` if it is not kAuto. Else spin if `local_ranks` fit on `local_cores`, otherwise yield.
WaitKind choose_wait(int local_ranks, int local_cores, WaitKind asked = WaitKind::kAuto);

// Number of cores that this process may use: its affinity mask, bounded by its cgroup's quota; at
// least 1.
int usable_cores();

// State of one waiting thread; not shared, except wake(). Typical use:
//
//   while (!done) {
//     if (transport.progress(), step()) policy.moved();
//     else if (!policy.pause(transport, store, deadline)) throw Error(ErrorCode::kDeadline, ...);
//   }
class WaitPolicy {
 public:
  // For `local_ranks` ranks that share `local_cores` (0: usable_cores()); topology.h finds both.
  explicit WaitPolicy(int local_ranks, int local_cores = 0,
                      const Settings& settings = read_settings());

  WaitKind kind() const { return kind_; }

  // Progress was made, or the caller did other work: the next pause is short again. Without this
  // call, time between two pauses counts as preemption.
  void moved() {
    pauses_ = 0;
    until_look_ = is_sharing_ ? 0 : stride_;
    is_long_ = has_lost_ = false;
    since_ = {};
  }

  // Counts pauses into `counts` from now on, to separate them by cause. `counts` must live until
  // the next call of this function, or as long as the policy.
  void count_into(WaitStatistics& counts) { counts_ = &counts; }

  // No progress was made: waits, longer with each call in a row. False once the deadline has
  // passed. Error kAborted with the text of a failure in the store. It first tries spin();
  // otherwise it reads clock and store, and may yield or sleep.
  bool pause(Transport& transport, Store& store, Deadline deadline);

  // The same checks without a wait, for callers that poll: reads the clock, and the store at most
  // once per millisecond. False once the deadline has passed. Error kAborted if a rank has failed.
  bool is_in_time(Store& store, Deadline deadline);

  // A pause of about 20 ns, without clock, store or kernel. False: nothing was done; call pause().
  bool spin();

  // Ends the sleep of a running pause(), or makes the next sleep return at once. From any thread
  // that gives the waiter more work. Costs a few ns if the waiter is not asleep.
  void wake();

 private:
  WaitStatistics& counts() { return counts_ == nullptr ? own_counts_ : *counts_; }
  void count_pause();
  void ask_store(Store& store, Clock::time_point now);
  bool look_up(Transport& transport, Store& store, Deadline deadline);
  void count_time(Clock::duration time);
  void notice_loss(Clock::time_point now, Clock::duration away);
  void sleep(Transport& transport, Store& store, Deadline deadline);
  Clock::duration nap() const;

  WaitKind kind_;
  WaitStatistics own_counts_;
  WaitStatistics* counts_ = nullptr;  // null: own_counts_
  std::chrono::microseconds spin_;
  std::uint64_t pauses_ = 0;
  unsigned stride_;           // spins from one look at clock and store to the next
  unsigned until_look_ = 0;   // spins left until the next look
  bool is_long_ = false;      // this wait is too long to keep spinning
  bool is_sharing_ = false;   // at the latest look, the awaited peer ran on this core
  bool has_lost_ = false;     // this wait was preempted
  double loss_rate_ = 0;      // moving average: preempted waits per wait
  bool is_cautious_ = false;  // other threads compute on this core: sleep instead
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

}  // namespace kolo::inline v0
