#include "collectives/algorithms/lanes.h"

#include <algorithm>
#include <stdexcept>

namespace kolo::inline v0 {

Lanes::Lanes(const ScheduleRequest& request, bool has_root)
    : host_of_(request.hosts.begin(), request.hosts.end()) {
  if (host_of_.empty()) host_of_.assign(at(request.size), 0);
  if (host_of_.size() != at(request.size)) {
    throw std::invalid_argument("a schedule needs the host of every rank, or no hosts at all");
  }
  for (int rank = 0; rank < request.size; ++rank) {
    const int host = host_of(rank);
    if (host < 0 || host > hosts()) {
      throw std::invalid_argument("hosts must be numbered in the order of their first ranks");
    }
    if (host == hosts()) ranks_.emplace_back();
    ranks_[at(host)].push_back(rank);
  }
  if (has_root) {
    std::vector<int>& roots = ranks_[at(host_of(request.root))];
    std::rotate(roots.begin(), std::find(roots.begin(), roots.end(), request.root), roots.end());
  }
  index_of_.resize(host_of_.size());
  lanes_ = request.size;
  for (const std::vector<int>& ranks : ranks_) {
    lanes_ = std::min(lanes_, static_cast<int>(ranks.size()));
    for (std::size_t i = 0; i < ranks.size(); ++i) index_of_[at(ranks[i])] = static_cast<int>(i);
  }
}

std::vector<int> Lanes::neighbours(int rank) const {
  const std::vector<int>& all = ranks(host_of(rank));
  std::vector<int> others;
  for (std::size_t k = 1; k < all.size(); ++k) {
    others.push_back(all[(at(index_of(rank)) + k) % all.size()]);
  }
  return others;
}

}  // namespace kolo::inline v0
