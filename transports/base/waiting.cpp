#include "transports/base/waiting.h"

#include <poll.h>
#include <sched.h>
#include <algorithm>
#include <array>
#include <utility>

#include "transports/error.h"
#include "transports/posix/host/cores.h"

namespace kolo::inline v0 {

namespace {

using namespace std::chrono_literals;

// How often a spinning waiter reads the clock, and a waiter that does not sleep reads the store. A
// read of a TCP store costs a system call. The caller's work between two pauses may take long (it
// polls every connection of a job), so the number of spins per look adapts to kBetweenLooks.
constexpr std::int64_t kLongestStride = 63;
constexpr auto kBetweenLooks = 50us;
constexpr auto kAskStoreEvery = 1ms;

// How long a waiter spins before it yields. A peer that has not moved by then may be waiting for
// this core, on which other processes or threads compete.
constexpr auto kSelfish = 50us;

// A waiter that returns this late was preempted by a computing thread. Waiting ranks on the same
// core give it back much sooner.
constexpr auto kLoss = 1ms;

// Occasional preemption costs less than the sleeps that would avoid it. If about 1 in 4 of the
// latest 16 waits was preempted, stop spinning and yielding for a time of `caution_`. If it happens
// again soon after, the time doubles (exponential backoff), at most kLongestCaution.
constexpr double kOften = 0.25;
constexpr double kLatest = 1.0 / 16;
constexpr int kCautionPerLoss = 16;
constexpr auto kLongestCaution = 1s;
constexpr auto kSelfishWithCaution = 5us;

// The longest sleep. The shorter limit is for a store that cannot wake the waiter.
constexpr auto kLongestSleep = 500ms;
constexpr auto kLongestSleepWithoutNews = 20ms;

// A nap, if the transport cannot wake the waiter, is a fixed part of the time already waited. So an
// event during a nap is seen at most that part too late.
constexpr int kNapPart = 16;
constexpr Clock::duration kShortestNap = 50us;
constexpr Clock::duration kLongestNap = 1ms;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Clock::duration longest_sleep(const Store& store) {
  return store.descriptor() >= 0 ? kLongestSleep : kLongestSleepWithoutNews;
}

timespec to_timespec(Clock::duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
}

}  // namespace

int usable_cores() {
  const auto cores = static_cast<double>(posix::affinity_cores().size());
  const auto quota = posix::cgroup_quota_cores();
  return std::max(1, static_cast<int>(quota ? std::min(cores, *quota) : cores));
}

WaitKind choose_wait(int local_ranks, int local_cores, WaitKind asked) {
  if (asked != WaitKind::kAuto) return asked;
  return local_ranks <= local_cores ? WaitKind::kSpin : WaitKind::kYield;
}

WaitPolicy::WaitPolicy(int local_ranks, int local_cores, const Settings& settings)
    : kind_(
          choose_wait(local_ranks, local_cores > 0 ? local_cores : usable_cores(), settings.wait)),
      spin_(settings.spin),
      stride_(kLongestStride),
      until_look_(stride_) {}

bool WaitPolicy::spin() {
  if (kind_ != WaitKind::kSpin || is_long_ || until_look_ == 0) return false;
  --until_look_;
  count_pause();
  ++counts().spins;
  relax();
  return true;
}

bool WaitPolicy::pause(Transport& transport, Store& store, Deadline deadline) {
  if (spin()) return true;
  count_pause();
  // A yield can last several time slices of other threads, so the clock is read after each.
  const bool is_shared = kind_ == WaitKind::kYield || (kind_ == WaitKind::kSpin && is_long_);
  if (is_shared && !is_cautious_) {
    ++counts().yields;
    const bool is_first = since_ == Clock::time_point{};  // the time of others is that of its look
    const auto begin = is_first ? Clock::now() : Clock::time_point{};
    ::sched_yield();
    if (is_first) count_time(Clock::now() - begin);
  }
  if (!look_up(transport, store, deadline)) {
    since_ = {};  // the caller's work before its next wait is not preemption
    return false;
  }
  const bool leaves = is_cautious_ && (kind_ == WaitKind::kYield || is_long_);
  if (kind_ == WaitKind::kBlock || leaves || looked_ - since_ > spin_)
    sleep(transport, store, deadline);
  return true;
}

void WaitPolicy::wake() {
  is_woken_ = true;
  if (is_asleep_) bell_.ring();
}

void WaitPolicy::count_pause() {
  if (pauses_ == 0) {
    loss_rate_ -= loss_rate_ * kLatest;
    ++counts().waits;
  }
  ++pauses_;
}

void WaitPolicy::count_time(Clock::duration time) {
  counts().waited_ns += static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

bool WaitPolicy::look_up(Transport& transport, Store& store, Deadline deadline) {
  const auto now = Clock::now();
  if (since_ == Clock::time_point{}) {
    since_ = now;
  } else {
    const auto away = now - looked_;
    count_time(away);
    const auto rounds = static_cast<std::int64_t>(pauses_ - looked_pauses_);
    const auto fitting = kBetweenLooks * rounds / std::max<Clock::duration>(away, 1ns);
    stride_ = static_cast<unsigned>(std::clamp<std::int64_t>(fitting, 1, kLongestStride));
    notice_loss(now, away);
  }
  looked_ = now;
  looked_pauses_ = pauses_;
  is_cautious_ = now < cautious_until_;
  is_long_ = now - since_ > (is_cautious_ ? kSelfishWithCaution : kSelfish);
  if (kind_ == WaitKind::kSpin && !is_long_)
    is_long_ = is_sharing_ = transport.shares_core_with_awaited_peer();
  until_look_ = stride_;
  ask_store(store, now);
  return now < deadline;
}

bool WaitPolicy::is_in_time(Store& store, Deadline deadline) {
  const auto now = Clock::now();
  ask_store(store, now);
  return now < deadline;
}

void WaitPolicy::ask_store(Store& store, Clock::time_point now) {
  if (now - asked_store_ < kAskStoreEvery) return;
  asked_store_ = now;
  if (const auto failure = store.failure()) throw Error(ErrorCode::kAborted, kNoPeer, *failure);
}

void WaitPolicy::notice_loss(Clock::time_point now, Clock::duration away) {
  if (away <= kLoss || has_lost_) return;
  has_lost_ = true;
  loss_rate_ += kLatest;
  if (loss_rate_ <= kOften) return;
  const bool is_again = now < cautious_until_ + caution_;
  caution_ =
      std::min<Clock::duration>(is_again ? 2 * caution_ : kCautionPerLoss * away, kLongestCaution);
  cautious_until_ = now + caution_;
}

void WaitPolicy::sleep(Transport& transport, Store& store, Deadline deadline) {
  until_look_ = 0;  // the next pause looks again, and sleeps if nothing has moved
  const bool naps = transport.descriptor() < 0;
  if (!naps && !transport.arm()) return;
  is_asleep_ = true;  // before is_woken_ is read; wake() writes and reads in the opposite order
  ++counts().sleeps;
  // poll() ignores descriptors below 0.
  std::array<pollfd, 3> watched{{{transport.descriptor(), POLLIN, 0},
                                 {store.descriptor(), POLLIN, 0},
                                 {bell_.descriptor(), POLLIN, 0}}};
  const auto longest = naps ? nap() : longest_sleep(store);
  const auto left = std::clamp<Clock::duration>(deadline - Clock::now(), 0ns, longest);
  const timespec time = to_timespec(is_woken_ ? 0ns : left);
  const int ready = ::ppoll(watched.data(), watched.size(), &time, nullptr);
  if (!naps) transport.disarm();
  const auto end = Clock::now();
  count_time(end - looked_);
  looked_ = end;  // the sleep is not preemption
  looked_pauses_ = pauses_;
  is_asleep_ = false;
  is_woken_.exchange(false);  // synchronizes with wake(): its caller's earlier writes are visible
  if (ready > 0 && watched[2].revents != 0) bell_.silence();
  // Read the store's news at once, not after kAskStoreEvery.
  if ((ready <= 0 && !naps) || watched[1].revents != 0) asked_store_ = {};
}

Clock::duration WaitPolicy::nap() const {
  return std::clamp<Clock::duration>((looked_ - since_) / kNapPart, kShortestNap, kLongestNap);
}

}  // namespace kolo::inline v0
