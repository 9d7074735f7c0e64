// Placement of ranks on hosts and lanes, for the hierarchical algorithms.
//
// The ranks of a host have *indices* there, in the order of ranks. *Lane* c consists of the ranks
// with index c, one on every host. There are as many lanes as the smallest host has ranks; on
// larger hosts some ranks are in no lane. If there is a root, the indices of its host start at the
// root, so that the root is in lane 0.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/schedule.h"

namespace kolo::inline v0 {

inline constexpr int kNoLane = -1;

class Lanes {
 public:
  // Throws std::invalid_argument if `request.hosts` is not empty and does not have one entry per
  // rank, or if hosts are not numbered from 0 in the order of their first ranks.
  explicit Lanes(const ScheduleRequest& request, bool has_root = false);

  int hosts() const { return static_cast<int>(ranks_.size()); }
  int lanes() const { return lanes_; }

  // Of a host, by index.
  const std::vector<int>& ranks(int host) const { return ranks_[at(host)]; }
  int size(int host) const { return static_cast<int>(ranks(host).size()); }
  int rank(int host, int index) const { return ranks(host)[at(index)]; }

  int host_of(int rank) const { return host_of_[at(rank)]; }
  int index_of(int rank) const { return index_of_[at(rank)]; }
  int lane_of(int rank) const { return index_of(rank) < lanes_ ? index_of(rank) : kNoLane; }

  // The other ranks of the rank's host, starting with the one after it.
  std::vector<int> neighbours(int rank) const;

  // The host `places` after `host`, in a circle.
  int after(int host, int places) const { return (host + places) % hosts(); }

 private:
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }

  std::vector<std::vector<int>> ranks_;
  std::vector<int> host_of_;
  std::vector<int> index_of_;
  int lanes_ = 0;
};

}  // namespace kolo::inline v0
