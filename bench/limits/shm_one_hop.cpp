// Floors of two ranks in shared memory for collectives of one hop: all except all-reduce; the
// barrier, without data; and an all-reduce so small that each rank sends all of it. There are three
// ways, of which the fastest counts:
//
//   in one line     up to 56 bytes travel in the cache line of the flag that announces them
//
//   through slots   the sender copies segments of 64 KiB into two slots in turn, and the receiver
//                   copies them out: two passes, the second from cache
//
//   copied once     the receiver copies from the sender's memory, as if mapped, or as if the kernel
//                   copied between processes for free. If only one rank sends, it copies the second
//                   half itself, so that both cores work
//
// Inputs were just written by their owner, and results are checked (see shm_all_reduce.cpp).
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/limits/float_buffer.h"
#include "bench/limits/kernels.h"
#include "bench/limits/limits.h"
#include "bench/limits/result_checks.h"
#include "bench/limits/shm_slots.h"
#include "bench/limits/thread_team.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kPerSlot = kSlotBytes / sizeof(float);

struct Side {
  FullLine lines[2];  // in turn: the other rank may still read the previous one
  Slot slots[kSlots];
  Flag posted;  // segments put into the slots
  Flag taken;   // segments that this rank has taken from the other's slots
  Flag ready;   // rounds: this rank's input may be read
  Flag done;    // rounds: this rank has received everything
};

// A range of one rank's data.
struct Range {
  std::size_t begin = 0;
  std::size_t count = 0;
};

class Pair {
 public:
  explicit Pair(const FloorRequest& request)
      : collective_(request.collective), count_(request.bytes / sizeof(float)), half_(count_ / 2) {
    for (auto& data : data_) data = FloatBuffer(count_, request.pages);
    if (collective_ == Collective::kAllToAll) {
      for (auto& data : results_) data = FloatBuffer(count_, request.pages);
    }
  }

  void prepare(int rank) {
    const bool is_sum = is_reduction(collective_) && collective_ != Collective::kExclusiveScan;
    const bool has_own = is_sum || collective_ == Collective::kAllToAll;
    const Range given = has_own ? Range{0, 2 * half_} : gives(rank);
    checks_[rank].next([&](const Pattern& pattern) { return count_wrong(rank, pattern); });
    fill(data_[rank].data() + given.begin, given.begin, given.count, rank, checks_[rank].pattern());
  }

  void in_one_line(int rank) {
    const Range given = gives(rank);
    const Range taken = gives(1 - rank);
    const std::uint64_t round = rounds_[rank].get() + 1;
    rounds_[rank].publish(round);
    const bool has_news = given.count > 0 || collective_ == Collective::kBarrier;
    FullLine& mine = sides_[rank].lines[round % 2];
    const FullLine& theirs = sides_[1 - rank].lines[round % 2];
    if (has_news) {
      if (given.count > 0)
        std::memcpy(mine.bytes, data_[rank].data() + given.begin, given.count * sizeof(float));
      mine.sequence.store(round, std::memory_order_release);
    }
    keep(rank);
    if (taken.count == 0 && collective_ != Collective::kBarrier) return;
    wait_for(theirs.sequence, round);
    float values[kLineBytes / sizeof(float)];
    std::memcpy(values, theirs.bytes, sizeof values);
    take(rank, values, 0, taken.count);
  }

  void through_slots(int rank) {
    Side& mine = sides_[rank];
    Side& theirs = sides_[1 - rank];
    const Range given = gives(rank);
    const std::size_t taken = gives(1 - rank).count;
    const std::uint64_t posted = mine.posted.get();
    const std::uint64_t got = mine.taken.get();
    for (std::size_t s = 0; s * kPerSlot < std::max(given.count, taken); ++s) {
      const std::size_t first = s * kPerSlot;
      if (first < given.count) {
        if (s >= kSlots) theirs.taken.wait_for(posted + s - kSlots + 1);
        std::memcpy(mine.slots[s % kSlots].bytes, data_[rank].data() + given.begin + first,
                    std::min(kPerSlot, given.count - first) * sizeof(float));
        mine.posted.publish(posted + s + 1);
      }
      if (first < taken) {
        theirs.posted.wait_for(got + s + 1);
        take(rank, reinterpret_cast<const float*>(theirs.slots[s % kSlots].bytes), first,
             std::min(kPerSlot, taken - first));
        mine.taken.publish(got + s + 1);
      }
    }
    keep(rank);
  }

  void copied_once(int rank) {
    Side& mine = sides_[rank];
    Side& theirs = sides_[1 - rank];
    const std::uint64_t round = mine.ready.get() + 1;
    mine.ready.publish(round);
    theirs.ready.wait_for(round);
    const Range taken = gives(1 - rank);
    const Range given = gives(rank);
    const std::size_t first = given.count / 2;
    const float* source = data_[1 - rank].data() + taken.begin;
    if (given.count == 0) {
      take(rank, source, 0, taken.count / 2);
    } else if (taken.count == 0) {
      take(1 - rank, data_[rank].data() + given.begin + first, first, given.count - first);
    } else {
      take(rank, source, 0, taken.count);
    }
    mine.done.publish(round);
    keep(rank);
    theirs.done.wait_for(round);
  }

  std::uint64_t count_wrong() {
    for (const int rank : {0, 1}) prepare(rank);
    return checks_[0].wrong() + checks_[1].wrong();
  }

 private:
  // The range of its data that `rank` sends to the other.
  Range gives(int rank) const {
    const std::size_t own = rank == 0 ? 0 : half_;
    const std::size_t others = half_ - own;
    switch (collective_) {
      case Collective::kAllReduce:
        return {0, count_};
      case Collective::kBroadcast:
      case Collective::kScan:
      case Collective::kExclusiveScan:
        return rank == 0 ? Range{0, count_} : Range{};
      case Collective::kReduce:
        return rank == 1 ? Range{0, count_} : Range{};
      case Collective::kGather:
        return rank == 1 ? Range{half_, half_} : Range{};
      case Collective::kScatter:
        return rank == 0 ? Range{half_, half_} : Range{};
      case Collective::kAllGather:
        return {own, half_};
      case Collective::kAllToAll:
      case Collective::kReduceScatter:
        return {others, half_};
      default:
        return {};
    }
  }

  // Stores received elements from `first` on at their place at `rank`, or adds them.
  void take(int rank, const float* source, std::size_t first, std::size_t count) {
    const std::size_t own = rank == 0 ? 0 : half_;
    float* data = data_[rank].data();
    switch (collective_) {
      case Collective::kAllReduce:
      case Collective::kReduce:
      case Collective::kScan:
        return add_to(data + first, source, count);
      case Collective::kReduceScatter:
        return add_to(data + own + first, source, count);
      case Collective::kBroadcast:
      case Collective::kExclusiveScan:
        std::memcpy(data + first, source, count * sizeof(float));
        return;
      case Collective::kGather:
      case Collective::kScatter:
        std::memcpy(data + half_ + first, source, count * sizeof(float));
        return;
      case Collective::kAllGather:
        std::memcpy(data + (half_ - own) + first, source, count * sizeof(float));
        return;
      case Collective::kAllToAll:
        std::memcpy(results_[rank].data() + (half_ - own) + first, source, count * sizeof(float));
        return;
      default:
        return;
    }
  }

  // Copies the own share of an all-to-all.
  void keep(int rank) {
    if (collective_ != Collective::kAllToAll) return;
    const std::size_t own = rank == 0 ? 0 : half_;
    std::memcpy(results_[rank].data() + own, data_[rank].data() + own, half_ * sizeof(float));
  }

  std::uint64_t count_wrong(int rank, const Pattern& pattern) const {
    const std::size_t own = rank == 0 ? 0 : half_;
    const float* data = data_[rank].data();
    switch (collective_) {
      case Collective::kAllReduce:
        return count_wrong_reductions(data, 0, 2 * half_, 0, pattern);
      case Collective::kReduce:
        return rank == 0 ? count_wrong_reductions(data, 0, 2 * half_, 0, pattern) : 0;
      case Collective::kScan:
        return rank == 1 ? count_wrong_reductions(data, 0, 2 * half_, 0, pattern) : 0;
      case Collective::kExclusiveScan:
        return rank == 1 ? count_wrong_copies(data, 0, 2 * half_, 0, pattern) : 0;
      case Collective::kGather:
        return rank == 0 ? count_wrong_copies(data + half_, half_, half_, 1, pattern) : 0;
      case Collective::kScatter:
        return rank == 1 ? count_wrong_copies(data + half_, half_, half_, 0, pattern) : 0;
      case Collective::kReduceScatter:
        return count_wrong_reductions(data + own, own, half_, 0, pattern);
      case Collective::kBroadcast:
        return count_wrong_copies(data, 0, 2 * half_, 0, pattern);
      case Collective::kAllGather:
        return count_wrong_copies(data, 0, half_, 0, pattern) +
               count_wrong_copies(data + half_, half_, half_, 1, pattern);
      case Collective::kAllToAll:
        return count_wrong_copies(results_[rank].data(), own, half_, 0, pattern) +
               count_wrong_copies(results_[rank].data() + half_, own, half_, 1, pattern);
      default:
        return 0;
    }
  }

  Collective collective_;
  std::size_t count_;
  std::size_t half_;
  FloatBuffer data_[2];
  FloatBuffer results_[2];  // for all-to-all
  ResultChecks checks_[2] = {ResultChecks(2), ResultChecks(2)};
  Flag rounds_[2];
  Side sides_[2];
};

// Bytes sent by the rank that sends more.
std::size_t given_bytes(const FloorRequest& request) {
  switch (request.collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kScan:
    case Collective::kExclusiveScan:
      return request.bytes;
    default:
      return request.bytes / 2;
  }
}

using Way = void (Pair::*)(int rank);

Row by(Way way, const char* name, const FloorRequest& request, double seconds) {
  const auto pair = std::make_unique<Pair>(request);
  const Round round{[&](int rank) { pair->prepare(rank); },
                    [&](int rank) { ((*pair).*way)(rank); }};
  Row row = floor_row(request, "shm", name, 2, seconds, round);
  row.wrong = pair->count_wrong();
  return row;
}

}  // namespace

Row one_hop_floor(const FloorRequest& request, double seconds) {
  if (given_bytes(request) <= kLineBytes)
    return by(&Pair::in_one_line, "in one line", request, seconds);
  const Row slots = by(&Pair::through_slots, "through slots", request, seconds / 2);
  const Row once = by(&Pair::copied_once, "copied once", request, seconds / 2);
  return once.time_us.median < slots.time_us.median ? once : slots;
}

}  // namespace kolo::bench
