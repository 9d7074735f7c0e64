// Where the ranks of a benchmark meet, apart from what is measured: a barrier, a few numbers, and a
// cache line to play ping-pong with, in memory that all of them see.
//
// The ranks are threads of one process or processes of one host. Nothing here goes through the
// transport under test, so that the same barrier opens every library's iterations.
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

// Times that one rank can put down between two gatherings.
inline constexpr std::size_t kMostIterations = 16 * 1024;

class RankGroup {
 public:
  // Collective over the `size` ranks that share the store; all must be on one host. Waits have
  // `timeout`. Error kDeadline names the ranks that never came, and the store. The store is asked
  // for failures in long waits, and must outlive the group.
  RankGroup(int rank, int size, Store& store, std::chrono::milliseconds timeout);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Returns, on all ranks at nearly the same time, when all have come. Error kAborted where one has
  // left for good or the store knows of a failure, kDeadline, naming them, where some do not come.
  void wait();

  // Done again and again by this rank where it waits for more than some microseconds, in the place
  // of sleeping: what a library must do that gets on only inside its calls.
  void set_meanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // The largest, and the sum, of one number from each rank.
  double largest(double mine);
  std::uint64_t sum(std::uint64_t mine);

  // For every i the largest of the ranks' times[i], on every rank. At most kMostIterations.
  std::vector<double> largest(std::span<const double> times);

  // A cache line's round trip in microseconds: between ranks 0 and 1; between two threads of rank
  // 0, on cores of their own, where there are more ranks than cores. 0 where there is one rank or
  // core.
  double cache_line_round_trip();

  // Sequence numbers that each rank puts down and the others read: what a barrier is checked with.
  void come(std::uint64_t turn);
  std::uint64_t ranks_behind(std::uint64_t turn) const;

  // Says that this rank has failed and comes no more.
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
