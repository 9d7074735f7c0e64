#include "collectives/plan_cache.h"

#include <algorithm>
#include <numeric>

#include "collectives/algorithm_table.h"

namespace kolo {
namespace {

// Up to here a segment travels with its header, in a cache line; an answer in place would need a
// slot beside it.
constexpr std::size_t kLeastAnswered = 2 * kOpeningPayload;

bool is_same(const ServerPlan& one, const ServerPlan& other) {
  return one.everywhere == other.everywhere && one.servers == other.servers;
}

}  // namespace

// FNV-1a, folded.
std::uint64_t hash(const ServerPlan& plan) {
  std::uint32_t sum = 2166136261U ^ static_cast<std::uint32_t>(plan.everywhere);
  for (const int server : plan.servers) {
    sum = (sum ^ static_cast<std::uint32_t>(server)) * 16777619U;
  }
  return (sum ^ sum >> 16) & 0xffff;
}

PlanCache::PlanCache(int rank, std::span<Channel* const> channels)
    : rank_(rank), channels_(channels) {
  bool is_first = true;
  for (const Channel* channel : channels) {
    if (channel == nullptr) continue;
    const Capabilities& can = channel->capabilities();
    can_answer_ = can_answer_ && can.can_answer;
    preferred_ =
        is_first ? can.preferred_segment_bytes : std::min(preferred_, can.preferred_segment_bytes);
    longest_ = is_first ? can.segment_bytes : std::min(longest_, can.segment_bytes);
    is_first = false;
  }
}

Executor& PlanCache::find(const Key& key) {
  static const ServerPlan kNoServers;
  const ServerPlan& servers = key.servers == nullptr ? kNoServers : *key.servers;
  const bool can_answer = can_answer_ && key.data_bytes > kLeastAnswered;
  for (const Plan& plan : plans_) {
    if (plan.algorithm == key.algorithm && plan.root == key.root &&
        plan.has_update == key.has_update && plan.can_answer == can_answer &&
        is_same(plan.servers, servers)) {
      return *plan.executor;
    }
  }
  Plan plan{key.algorithm, key.root, key.has_update, can_answer, servers, nullptr};
  make(plan);
  plans_.push_back(std::move(plan));
  return *plans_.back().executor;
}

void PlanCache::make(Plan& plan) const {
  PlanRequest request;
  const int size = static_cast<int>(channels_.size());
  request.ranks = {rank_, size, plan.root, plan.can_answer};
  request.servers.rank = rank_;
  request.servers.size = size;
  request.servers.can_answer = plan.can_answer;
  request.servers.has_update = plan.has_update;
  request.servers.servers = plan.servers.servers;
  request.servers.servers_work = plan.servers.everywhere;
  if (plan.servers.everywhere) {
    request.servers.servers.resize(channels_.size());
    std::iota(request.servers.servers.begin(), request.servers.servers.end(), 0);
  }
  Schedule schedule = algorithms()[plan.algorithm].write(request);
  plan.executor = std::make_unique<Executor>(std::move(schedule), channels_);
}

std::size_t PlanCache::segment_bytes(const Executor& executor, std::size_t count, ElementType type,
                                     std::size_t asked) const {
  if (asked == 0) {
    const std::size_t chunk = chunk_count(count, executor.schedule().chunks, 0);
    return std::min(choose_segment_bytes(chunk * element_bytes(type), preferred_), longest_);
  }
  const std::size_t whole = asked / kSegmentAlignment * kSegmentAlignment;
  return std::clamp(whole, kSegmentAlignment, longest_);
}

std::uint64_t PlanCache::header_bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const Plan& plan : plans_) bytes += plan.executor->header_bytes_sent();
  return bytes;
}

std::uint64_t PlanCache::header_bytes_received() const {
  std::uint64_t bytes = 0;
  for (const Plan& plan : plans_) bytes += plan.executor->header_bytes_received();
  return bytes;
}

}  // namespace kolo
