#include "bench/measure/rank_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"
#include "bench/measure/memory_file.h"
#include "transports/error.h"
#include "transports/posix/descriptor.h"
#include "transports/store/all_gather.h"

namespace kolo::bench {
namespace {

constexpr int kSpins = 2000;                  // then yield, also to helper threads of a library
constexpr int kSpinsWhenOversubscribed = 10;  // more ranks than cores
constexpr std::chrono::microseconds kWakeful{500};  // then sleep
constexpr std::chrono::milliseconds kLongestSleep{50};
constexpr std::chrono::milliseconds kAskStoreEvery{50};

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// Sleeps until the word is no longer `old`, another process wakes this one, or kLongestSleep has
// passed.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t old) {
  const timespec longest{0, std::chrono::nanoseconds(kLongestSleep).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, old, &longest, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

}  // namespace

struct alignas(64) RankGroup::Slot {
  // Number of barriers that this rank has reached; read only by ranks whose wait timed out. It has
  // a cache line of its own, so that writing it is cheap.
  std::atomic<std::uint64_t> meetings{0};
  alignas(64) std::atomic<std::uint64_t> turn{0};
  double value = 0;
  std::uint64_t number = 0;
  alignas(64) double times[kMostIterations];
};

struct alignas(64) RankGroup::Shared {
  alignas(64) std::atomic<std::uint32_t> arrived{0};
  // Grows to the next even number with each barrier; the lowest bit tells the ranks to repeat it.
  alignas(64) std::atomic<std::uint32_t> phase{0};
  alignas(64) std::atomic<std::uint32_t> slept{0};  // 1 + the latest phase in which a rank slept
  alignas(64) std::atomic<std::uint32_t> has_left{0};
  Line lines[2];
};

// Rank 0 makes the memory; the others open it through rank 0's descriptor table. A new file is all
// zeros, the initial value of the atomics.
RankGroup::RankGroup(int rank, int size, Store& store, std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), store_(store), timeout_(timeout) {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  bytes_ = sizeof(Shared) + static_cast<std::size_t>(size) * sizeof(Slot);
  posix::Descriptor file;
  std::string path;
  if (rank == 0) {
    file = make_memory_file(bytes_, "rank 0: shared memory of the ranks");
    path = fmt::format("/proc/{}/fd/{}", getpid(), file.get());
  }
  path = exchange(store, rank, size, "meeting", path, Clock::now() + timeout, "join the benchmark")
             .front();
  if (rank != 0) {
    file = posix::Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open()) posix::throw_system("the ranks must all be on one host: open " + path);
  }
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) posix::throw_system("mapping the shared memory of the ranks");
  shared_ = static_cast<Shared*>(memory);
  has_spare_cores_ = available_cores().size() >= static_cast<std::size_t>(size);
  wait();  // keep the descriptor open until all ranks have opened it
}

RankGroup::~RankGroup() { munmap(shared_, bytes_); }

RankGroup::Slot& RankGroup::slot(int rank) const {
  return reinterpret_cast<Slot*>(shared_ + 1)[rank];
}

void RankGroup::wait() {
  const Deadline deadline = Clock::now() + timeout_;
  if (meet(deadline, true)) meet(deadline, false);
}

// Waits for all ranks. Returns true if the ranks must repeat the barrier because one slept and is
// late. Ranks sleep in long waits: on a busy core each yield would give away a whole time slice.
bool RankGroup::meet(Deadline deadline, bool may_repeat) {
  const std::uint32_t phase = shared_->phase.load(std::memory_order_relaxed);
  slot(rank_).meetings.store(++meetings_, std::memory_order_relaxed);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<std::uint32_t>(size_)) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    const bool has_slept = shared_->slept.load() == phase + 1;
    const bool is_again = has_slept && may_repeat;
    shared_->phase.store(((phase | 1) + 1) | (is_again ? 1 : 0));
    if (has_slept || shared_->slept.load() == phase + 1) wake_all(shared_->phase);
    return is_again;
  }
  const int spins = has_spare_cores_ ? kSpins : kSpinsWhenOversubscribed;
  int spun = 0;
  Deadline since{};
  std::uint32_t now;
  while ((now = shared_->phase.load(std::memory_order_acquire)) == phase) {
    if (++spun < spins) {
      relax();
      continue;
    }
    if (since == Deadline{}) since = Clock::now();
    look_up(deadline);
    if (meanwhile_) meanwhile_();
    if (meanwhile_ || Clock::now() - since < kWakeful) {
      sched_yield();
    } else {
      say_asleep(phase);
      sleep_while(shared_->phase, phase);
    }
  }
  return (now & 1) != 0;
}

// Only increases the value: a delayed rank may be a phase behind.
void RankGroup::say_asleep(std::uint32_t phase) {
  std::uint32_t slept = shared_->slept.load();
  while (static_cast<std::int32_t>(slept - (phase + 1)) < 0 &&
         !shared_->slept.compare_exchange_weak(slept, phase + 1)) {
  }
}

// Throws if waiting on is useless: a rank has left, the store has a failure, or the deadline has
// passed.
void RankGroup::look_up(Deadline deadline, int awaited) {
  const auto now = Clock::now();
  if (shared_->has_left.load() != 0) {
    throw Error(ErrorCode::kAborted, kNoPeer,
                fmt::format("rank {}: another rank of the benchmark has failed", rank_));
  }
  if (now - asked_store_ >= kAskStoreEvery) {
    asked_store_ = now;
    if (const auto failure = store_.failure()) throw Error(ErrorCode::kAborted, kNoPeer, *failure);
  }
  if (now <= deadline) return;
  const auto missing = awaited == kNoPeer ? ranks_missing() : std::vector<int>{awaited};
  throw Error(ErrorCode::kDeadline, missing.empty() ? kNoPeer : missing.front(),
              fmt::format("rank {}: waited {} s for {} before the next iteration: see whether it "
                          "has stopped or another program has its core, or raise --timeout",
                          rank_, std::chrono::duration<double>(timeout_).count(),
                          missing.empty() ? "the other ranks" : name_ranks(missing)));
}

std::vector<int> RankGroup::ranks_missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (slot(rank).meetings.load(std::memory_order_relaxed) < meetings_) missing.push_back(rank);
  }
  return missing;
}

void RankGroup::publish(double value, std::uint64_t number) {
  slot(rank_).value = value;
  slot(rank_).number = number;
  wait();
}

double RankGroup::largest(double mine) {
  publish(mine, 0);
  double result = mine;
  for (int rank = 0; rank < size_; ++rank) result = std::max(result, slot(rank).value);
  wait();  // before any rank writes its next value
  return result;
}

std::uint64_t RankGroup::sum(std::uint64_t mine) {
  publish(0, mine);
  std::uint64_t result = 0;
  for (int rank = 0; rank < size_; ++rank) result += slot(rank).number;
  wait();
  return result;
}

std::vector<double> RankGroup::largest(std::span<const double> times) {
  std::copy(times.begin(), times.end(), slot(rank_).times);
  wait();
  std::vector<double> result(times.begin(), times.end());
  for (int rank = 0; rank < size_; ++rank) {
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = std::max(result[i], slot(rank).times[i]);
  }
  wait();
  return result;
}

// The fastest of a few runs, as an interrupted one says nothing about distance.
double RankGroup::cache_line_round_trip() {
  double took = 0;
  wait();
  if (has_spare_cores_ && size_ > 1 && rank_ < 2) {
    // The other rank may stop during the probe, so the wait has a deadline.
    const Deadline deadline = Clock::now() + timeout_;
    took = quickest_ping_pong(shared_->lines[0], shared_->lines[1], rank_,
                              [this, deadline] { look_up(deadline, 1 - rank_); });
  } else if (!has_spare_cores_ && rank_ == 0) {
    took = bench::cache_line_round_trip();
  }
  return largest(rank_ == 0 ? took : 0);
}

void RankGroup::come(std::uint64_t turn) {
  slot(rank_).turn.store(turn, std::memory_order_release);
}

std::uint64_t RankGroup::ranks_behind(std::uint64_t turn) const {
  std::uint64_t behind = 0;
  for (int rank = 0; rank < size_; ++rank)
    behind += slot(rank).turn.load(std::memory_order_acquire) < turn ? 1U : 0U;
  return behind;
}

void RankGroup::leave() noexcept {
  shared_->has_left.store(1);
  wake_all(shared_->phase);
}

}  // namespace kolo::bench
