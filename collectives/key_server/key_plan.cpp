// Cuts the shares of servers into keys.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collectives/key_server.h"
#include "transports/base/check.h"

namespace kolo::inline v0 {
namespace {

std::size_t length_of(const KeyRange& range) {
  return std::accumulate(range.shares.begin(), range.shares.end(), std::size_t{0});
}

void require_apart(std::span<const KeyRange> ranges) {
  std::vector<const KeyRange*> sorted;
  for (const KeyRange& range : ranges) {
    if (length_of(range) > 0) sorted.push_back(&range);
  }
  std::ranges::sort(sorted, {}, &KeyRange::first);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const std::size_t end = sorted[i - 1]->first + length_of(*sorted[i - 1]);
    check(end <= sorted[i]->first,
          fmt::format("plan_keys: the ranges from elements {} and {} overlap", sorted[i - 1]->first,
                      sorted[i]->first));
  }
}

}  // namespace

KeyPlan plan_keys(std::span<const KeyRange> ranges, std::span<const int> servers,
                  std::size_t longest) {
  check(longest > 0, "plan_keys: keys of at most 0 elements");
  check(!servers.empty(), "plan_keys: there is no server");
  KeyPlan plan;
  plan.servers.assign(servers.begin(), servers.end());
  std::vector<int> sorted = plan.servers;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  check(twice == sorted.end(), "plan_keys: a server is named twice");
  for (const KeyRange& range : ranges) {
    check(range.shares.size() == servers.size(),
          fmt::format("plan_keys: a range with {} shares for {} servers", range.shares.size(),
                      servers.size()));
    plan.first_keys.push_back(plan.keys.size());
    std::size_t first = range.first;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      const std::size_t share = range.shares[i];
      const auto pieces = static_cast<int>((share + longest - 1) / longest);
      for (int piece = 0; piece < pieces; ++piece) {
        plan.keys.push_back({first + chunk_begin(share, pieces, piece),
                             chunk_count(share, pieces, piece), servers[i]});
      }
      first += share;
    }
    plan.elements = std::max(plan.elements, first);
  }
  plan.first_keys.push_back(plan.keys.size());
  require_apart(ranges);
  return plan;
}

}  // namespace kolo::inline v0
