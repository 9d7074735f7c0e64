// Group of the ranks of a benchmark, independent of the measured library: a barrier, exchange of a
// few numbers, and a cache-line probe, in shared memory.
//
// The ranks are threads of one process or processes of one host. Nothing here uses the measured
// transport, so every library's iterations start from the same barrier.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/error.h"
#include "transports/rendezvous.h"

namespace kolo::bench {

// Maximum number of times per rank in one exchange.
inline constexpr std::size_t kMostIterations = 16 * 1024;

class RankGroup {
 public:
  // Collective over the `size` ranks that share the store; all must be on one host. Waits end after
  // `timeout`. Error kDeadline names the missing ranks and the store. Long waits ask the store for
  // failures, so it must outlive the group.
  RankGroup(int rank, int size, Store& store, std::chrono::milliseconds timeout);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Barrier: returns on all ranks at nearly the same time, after all have arrived. Error kAborted
  // if a rank has left or the store has a failure; kDeadline with the names of missing ranks.
  void wait();

  // Called repeatedly while this rank waits for more than a few microseconds, instead of sleeping:
  // for libraries that progress only inside their calls.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // The maximum and the sum of one number from each rank.
  double largest(double mine);
  std::uint64_t sum(std::uint64_t mine);

  // For every i the maximum of the ranks' times[i], on every rank. At most kMostIterations.
  std::vector<double> largest(std::span<const double> times);

  // A cache line's round trip in microseconds, between ranks 0 and 1. With more ranks than cores:
  // between two threads of rank 0 on their own cores. 0 if there is one rank or one core.
  double cache_line_round_trip();

  // Sequence numbers that each rank writes and the others read, to check barriers.
  void come(std::uint64_t turn);
  std::uint64_t ranks_behind(std::uint64_t turn) const;

  // Tells the others that this rank has failed and will not come again.
  void leave() noexcept;

 private:
  struct Shared;
  struct Slot;

  bool meet(Deadline deadline, bool may_repeat);
  void say_asleep(std::uint32_t phase);
  Slot& slot(int rank) const;
  void publish(double value, std::uint64_t number);
  void look_up(Deadline deadline, int awaited = kNoPeer);
  std::vector<int> ranks_missing() const;

  int rank_;
  int size_;
  Store& store_;
  std::chrono::milliseconds timeout_;
  Deadline asked_store_{};
  std::uint64_t meetings_ = 0;
  std::size_t bytes_ = 0;
  Shared* shared_ = nullptr;
  bool has_spare_cores_ = false;
  std::function<void()> meanwhile_;
};

}  // namespace kolo::bench
