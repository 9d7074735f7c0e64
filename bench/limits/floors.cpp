// Choice of the floor for a collective.
#include <algorithm>
#include <string>

#include "bench/cli/commands.h"
#include "bench/limits/limits.h"
#include "bench/limits/shm_slots.h"
#include "bench/measure/cache_line.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 30;  // of all ranks together

}  // namespace

bool has_floor(const FloorRequest& request) {
  const auto ranks = static_cast<std::size_t>(request.ranks);
  if (request.ranks < 2) return false;
  switch (request.collective) {
    case Collective::kBarrier:
      return request.ranks == 2;
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kAllToAll:
    case Collective::kBroadcast:
    case Collective::kReduce:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kScan:
    case Collective::kExclusiveScan:
      return request.bytes >= ranks * sizeof(float) &&
             (request.ranks == 2 || request.bytes <= kMostBytes / ranks);
    default:
      return false;
  }
}

Row shared_memory_floor(const FloorRequest& request, double seconds) {
  if (request.ranks > 2) return memory_traffic_floor(request, seconds);
  if (request.collective != Collective::kAllReduce) return one_hop_floor(request, seconds);
  if (request.is_mapped) return mapped_all_reduce_floor(request, seconds);
  if (request.bytes > kLineBytes) return all_reduce_floor(request, seconds);
  return std::min(
      one_hop_floor(request, seconds / 2), all_reduce_floor(request, seconds / 2),
      [](const Row& one, const Row& other) { return one.time_us.median < other.time_us.median; });
}

Row floor_row(const FloorRequest& request, const char* transport, const std::string& algorithm,
              int threads, double seconds, const Round& round) {
  Row row;
  row.library = "floor";
  row.transport = transport;
  row.algorithm = algorithm;
  row.collective = command_of(request.collective);
  row.problem.collective = request.collective;
  row.problem.count = request.bytes / sizeof(float);
  row.problem.is_in_place = request.collective != Collective::kAllToAll;
  row.is_memory_its_own = request.is_mapped;
  row.ranks = request.ranks;
  row.bytes = request.bytes;
  row.distance.add(cache_line_round_trip());
  const std::vector<double> times = time_for(threads, seconds, round);
  row.distance.add(cache_line_round_trip());
  row.iterations = times.size();
  row.time_us = quantiles(times);
  return row;
}

}  // namespace kolo::bench
