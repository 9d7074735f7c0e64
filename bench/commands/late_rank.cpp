#include "bench/commands/late_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "bench/measure/statistics.h"

namespace kolo::bench {
namespace {

// The last rank of one operation, and its distance to the rank before it.
struct Last {
  int rank = 0;
  double by_us = 0;
};

Last last_of(const std::map<int, double>& begins) {
  std::vector<std::pair<double, int>> order;
  for (const auto& [rank, begin] : begins) order.emplace_back(begin, rank);
  std::ranges::sort(order);
  const auto last = order.rbegin();
  return {last->second, last->first - std::next(last)->first};
}

std::string format_time(double us) {
  return us < 1000 ? fmt::format("{:.1f} us", us) : fmt::format("{:.1f} ms", us / 1000);
}

}  // namespace

std::string late_rank_text(const OperationBegins& begins) {
  std::size_t ranks = 0;
  for (const auto& [operation, of_ranks] : begins) ranks = std::max(ranks, of_ranks.size());
  if (ranks < 2) return "";
  std::map<int, std::vector<double>> lasts;  // by rank
  std::size_t operations = 0;
  for (const auto& [operation, of_ranks] : begins) {
    if (of_ranks.size() < ranks) continue;
    ++operations;
    const Last last = last_of(of_ranks);
    lasts[last.rank].push_back(last.by_us);
  }
  const auto& [rank, by_us] =
      *std::ranges::max_element(lasts, {}, [](const auto& one) { return one.second.size(); });
  return fmt::format("rank {} began last in {} of {} operations, by {}", rank, by_us.size(),
                     operations, format_time(quantile(by_us, 0.5)));
}

}  // namespace kolo::bench
