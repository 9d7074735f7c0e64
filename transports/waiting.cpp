#include "transports/waiting.h"

#include <poll.h>
#include <sched.h>
#include <algorithm>
#include <array>

#include "transports/error.h"
#include "transports/posix/cores.h"

namespace kolo {

namespace {

using namespace std::chrono_literals;

// How often the clock is read while spinning or yielding, and the store while not sleeping. Asking
// a TCP store costs a system call.
constexpr std::uint64_t kPausesPerLook = 64;
constexpr auto kAskStoreEvery = 1ms;

// How long a spinning waiter keeps its core to itself. A peer that has not moved by then may be
// waiting for that very core: other processes compete for it, or other threads of this one.
constexpr auto kSelfish = 50us;

// The longest sleep: bounds the harm of a store that only tells when asked.
constexpr auto kLongestSleep = 500ms;
constexpr auto kLongestSleepWithoutNews = 20ms;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
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
      spin_(settings.spin) {}

bool WaitPolicy::spin() {
  const bool is_look_due = (pauses_ + 1) % kPausesPerLook == 0;
  if (kind_ != WaitKind::kSpin || is_long_ || is_look_due) return false;
  WaitStatistics& counts = this->counts();
  counts.waits += pauses_ == 0 ? 1 : 0;
  ++counts.spins;
  ++pauses_;
  relax();
  return true;
}

bool WaitPolicy::pause(Transport& transport, Store& store, Deadline deadline) {
  if (spin()) return true;
  WaitStatistics& counts = this->counts();
  counts.waits += pauses_ == 0 ? 1 : 0;
  ++pauses_;
  // A yield can cost whole time slices of others, so the clock is read after each.
  if (kind_ == WaitKind::kYield || (kind_ == WaitKind::kSpin && is_long_)) {
    ++counts.yields;
    ::sched_yield();
  }
  if (!look_up(store, deadline)) return false;
  const bool is_patient = kind_ == WaitKind::kBlock || Clock::now() - since_ > spin_;
  if (is_patient) sleep(transport, store, deadline);
  return true;
}

void WaitPolicy::wake() {
  is_woken_ = true;
  if (is_asleep_) bell_.ring();
}

bool WaitPolicy::look_up(Store& store, Deadline deadline) {
  const auto now = Clock::now();
  if (since_ == Clock::time_point{}) since_ = now;
  is_long_ = now - since_ > kSelfish;
  if (now - asked_store_ >= kAskStoreEvery) {
    asked_store_ = now;
    if (const auto failure = store.failure()) throw Error(ErrorCode::kAborted, kNoPeer, *failure);
  }
  return now < deadline;
}

void WaitPolicy::sleep(Transport& transport, Store& store, Deadline deadline) {
  pauses_ = kPausesPerLook - 1;  // the next pause looks again, and sleeps if nothing has moved
  if (transport.descriptor() < 0) {
    ++counts().yields;
    ::sched_yield();
    return;
  }
  if (!transport.arm()) return;
  is_asleep_ = true;  // before the look at is_woken_, as wake() has it the other way round
  ++counts().sleeps;
  // A descriptor below 0 is not watched.
  std::array<pollfd, 3> watched{{{transport.descriptor(), POLLIN, 0},
                                 {store.descriptor(), POLLIN, 0},
                                 {bell_.descriptor(), POLLIN, 0}}};
  const bool has_news = store.descriptor() >= 0;
  const auto longest = has_news ? kLongestSleep : kLongestSleepWithoutNews;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  const auto time = is_woken_ ? 0ms : std::clamp<std::chrono::milliseconds>(left, 0ms, longest);
  const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(time.count()));
  transport.disarm();
  is_asleep_ = false;
  is_woken_.exchange(false);  // reads what wake() wrote, and so sees all that came before it
  if (ready > 0 && watched[2].revents != 0) bell_.silence();
  // Whatever the store has to say is asked at once, not after kAskStoreEvery.
  if (ready <= 0 || watched[1].revents != 0) asked_store_ = {};
}

}  // namespace kolo
