#include "bench/meeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "bench/cache_line.h"
#include "bench/cores.h"
#include "bench/memory_file.h"
#include "transports/error.h"
#include "transports/exchange.h"
#include "transports/posix/cores.h"
#include "transports/posix/descriptor.h"

namespace kolo::bench {
namespace {

constexpr int kSpins = 2000;  // then let others run: helper threads of a library under test, too
constexpr int kSpinsWhenCrowded = 10;  // more ranks than cores
constexpr int kChecksPerClock = 256;   // looks at the clock that seldom
constexpr std::chrono::milliseconds kAskStoreEvery{50};

}  // namespace

struct alignas(64) Meeting::Seat {
  // How many waits this rank has begun: who looks when it waits in vain. A line of its own, so that
  // writing it costs nothing.
  std::atomic<std::uint64_t> waits{0};
  alignas(64) std::atomic<std::uint64_t> turn{0};
  double value = 0;
  std::uint64_t number = 0;
  alignas(64) double times[kMostIterations];
};

struct alignas(64) Meeting::Shared {
  alignas(64) std::atomic<std::uint32_t> arrived{0};
  alignas(64) std::atomic<std::uint32_t> phase{0};
  alignas(64) std::atomic<std::uint32_t> has_left{0};
  Line lines[2];
};

// Rank 0 makes the memory; the others open it through rank 0's descriptor table. A fresh file is
// all zeros, which is what the atomics begin with.
Meeting::Meeting(int rank, int size, Store& store, std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), store_(store), timeout_(timeout) {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  bytes_ = sizeof(Shared) + static_cast<std::size_t>(size) * sizeof(Seat);
  posix::Descriptor file;
  std::string path;
  if (rank == 0) {
    file = make_memory_file(bytes_, "rank 0: memory for the ranks to meet in");
    path = fmt::format("/proc/{}/fd/{}", getpid(), file.get());
  }
  path = exchange(store, rank, size, "meeting", path, Clock::now() + timeout, "join the benchmark")
             .front();
  if (rank != 0) {
    file = posix::Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open())
      posix::throw_system("kolo-bench: the ranks must all be on one host: open " + path);
  }
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) posix::throw_system("kolo-bench: mapping the memory to meet in");
  shared_ = static_cast<Shared*>(memory);
  has_spare_cores_ = posix::affinity_cores().size() >= static_cast<std::size_t>(size);
  wait();  // nobody closes the descriptor before all have opened it
}

Meeting::~Meeting() { munmap(shared_, bytes_); }

Meeting::Seat& Meeting::seat(int rank) const { return reinterpret_cast<Seat*>(shared_ + 1)[rank]; }

void Meeting::wait() {
  const std::uint32_t phase = shared_->phase.load(std::memory_order_relaxed);
  seat(rank_).waits.store(++waits_, std::memory_order_relaxed);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<std::uint32_t>(size_)) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    shared_->phase.store(phase + 1, std::memory_order_release);
    return;
  }
  const Deadline deadline = Clock::now() + timeout_;
  const int spins = has_spare_cores_ ? kSpins : kSpinsWhenCrowded;
  for (std::int64_t turn = 1; shared_->phase.load(std::memory_order_acquire) == phase; ++turn) {
    if (turn < spins) {
      relax();
      continue;
    }
    sched_yield();
    if (turn % kChecksPerClock == 0) look_up(deadline);
  }
}

// Whether it makes sense to wait on.
void Meeting::look_up(Deadline deadline, int awaited) {
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

std::vector<int> Meeting::ranks_missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (seat(rank).waits.load(std::memory_order_relaxed) < waits_) missing.push_back(rank);
  }
  return missing;
}

void Meeting::publish(double value, std::uint64_t number) {
  seat(rank_).value = value;
  seat(rank_).number = number;
  wait();
}

double Meeting::largest(double mine) {
  publish(mine, 0);
  double result = mine;
  for (int rank = 0; rank < size_; ++rank) result = std::max(result, seat(rank).value);
  wait();  // before anybody writes the next
  return result;
}

std::uint64_t Meeting::sum(std::uint64_t mine) {
  publish(0, mine);
  std::uint64_t result = 0;
  for (int rank = 0; rank < size_; ++rank) result += seat(rank).number;
  wait();
  return result;
}

std::vector<double> Meeting::largest(std::span<const double> times) {
  std::copy(times.begin(), times.end(), seat(rank_).times);
  wait();
  std::vector<double> result(times.begin(), times.end());
  for (int rank = 0; rank < size_; ++rank) {
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = std::max(result[i], seat(rank).times[i]);
  }
  wait();
  return result;
}

// The quickest of a few: one that was interrupted says nothing about distance.
double Meeting::cache_line_round_trip() {
  double took = 0;
  wait();
  if (has_spare_cores_ && size_ > 1 && rank_ < 2) {
    // The other may be stopped in the middle of the game.
    const Deadline deadline = Clock::now() + timeout_;
    took = quickest_ping_pong(shared_->lines[0], shared_->lines[1], rank_,
                              [this, deadline] { look_up(deadline, 1 - rank_); });
  }
  return largest(rank_ == 0 ? took : 0);
}

void Meeting::come(std::uint64_t turn) { seat(rank_).turn.store(turn, std::memory_order_release); }

std::uint64_t Meeting::ranks_behind(std::uint64_t turn) const {
  std::uint64_t behind = 0;
  for (int rank = 0; rank < size_; ++rank)
    behind += seat(rank).turn.load(std::memory_order_acquire) < turn ? 1U : 0U;
  return behind;
}

void Meeting::leave() noexcept { shared_->has_left.store(1); }

}  // namespace kolo::bench
