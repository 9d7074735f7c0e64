#include "collectives/server_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "collectives/schedule.h"

namespace kolo::inline v0 {
namespace {

void require_parts(const ServerPlan& plan, std::size_t servers) {
  if (plan.parts.size() != servers) {
    throw std::invalid_argument(
        fmt::format("the server plan has {} entries in parts for {} servers; give one for each",
                    plan.parts.size(), servers));
  }
  const int least = *std::ranges::min_element(plan.parts);
  if (least < 1) {
    throw std::invalid_argument(
        fmt::format("a server of the plan has {} parts; each holds at least one", least));
  }
  const auto all = std::reduce(plan.parts.begin(), plan.parts.end(), std::int64_t{0});
  if (all <= std::numeric_limits<int>::max()) return;
  throw std::invalid_argument(fmt::format(
      "the servers of the plan have {} parts together; the most is {}: divide them by a number",
      all, std::numeric_limits<int>::max()));
}

// Place of `rank` among the plan's servers; -1: it does not serve.
int place_of(const ServerPlan& plan, int rank) {
  const auto found = std::ranges::find(plan.servers, rank);
  if (found != plan.servers.end()) return static_cast<int>(found - plan.servers.begin());
  if (!plan.everywhere) return -1;
  const auto before =
      std::ranges::count_if(plan.servers, [rank](int server) { return server < rank; });
  return static_cast<int>(plan.servers.size()) + rank - static_cast<int>(before);
}

}  // namespace

ParameterServerRequest request_of(const ServerPlan& plan, int rank, int size) {
  ParameterServerRequest request;
  request.rank = rank;
  request.size = size;
  request.servers = plan.servers;
  request.servers_work = plan.everywhere;
  request.dedicated = static_cast<int>(plan.servers.size());
  request.parts = plan.parts;
  for (int other = 0; plan.everywhere && other < size; ++other) {
    if (std::ranges::find(plan.servers, other) == plan.servers.end())
      request.servers.push_back(other);
  }
  return request;
}

ServerShare share_of(const ServerPlan& plan, int rank, int size, std::size_t count) {
  const std::size_t servers =
      plan.everywhere ? static_cast<std::size_t>(size) : plan.servers.size();
  if (!plan.parts.empty()) require_parts(plan, servers);
  const int place = place_of(plan, rank);
  if (place < 0 || place >= static_cast<int>(servers)) return {};
  int first = place, own = 1, all = static_cast<int>(servers);
  if (!plan.parts.empty()) {
    const auto at = plan.parts.begin() + place;
    first = std::reduce(plan.parts.begin(), at);
    own = *at;
    all = std::reduce(plan.parts.begin(), plan.parts.end());
  }
  const std::size_t begin = chunk_begin(count, all, first);
  return {begin, chunk_begin(count, all, first + own) - begin};
}

ServerPlan balanced_plan(std::vector<int> servers, int size) {
  const auto dedicated = static_cast<int>(servers.size());
  const int workers = size - dedicated;
  if (workers < 1) {
    throw std::invalid_argument(
        fmt::format("a balanced server plan needs a worker; of {} ranks {} are dedicated servers",
                    size, dedicated));
  }
  ServerPlan plan;
  plan.servers = std::move(servers);
  plan.everywhere = dedicated < workers;
  if (!plan.everywhere || dedicated == 0) return plan;
  const int of_dedicated = 2 * (workers - 1);
  const int of_worker = workers - dedicated;
  const int divisor = std::gcd(of_dedicated, of_worker);
  plan.parts.assign(static_cast<std::size_t>(size), of_worker / divisor);
  std::fill_n(plan.parts.begin(), dedicated, of_dedicated / divisor);
  return plan;
}

}  // namespace kolo::inline v0
