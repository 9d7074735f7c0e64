#include "collectives/executor/plan_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "collectives/algorithms/algorithm_table.h"
#include "collectives/server_plan.h"
#include "transports/base/staged.h"
#include "transports/error.h"

namespace kolo::inline v0 {
namespace {

// FNV-1a, folded.
template <typename Numbers>
std::uint64_t hash(std::uint64_t sum, const Numbers& numbers) {
  for (const auto number : numbers) {
    sum = (sum ^ static_cast<std::uint64_t>(number)) * 1099511628211U;
  }
  sum ^= sum >> 32;
  return (sum ^ sum >> 16) & 0xffff;
}

constexpr std::uint64_t kHashBasis = 14695981039346656037U;

// A shorter latency is not a long network, but a machine that was busy during the measurement.
constexpr double kLongLatencyUs = 200;

// Segment length relative to the data in flight. Two segments in flight then cover a latency, with
// a reserve for jitter.
constexpr double kShareOfWay = 1.25;

// Bytes in flight during one latency: the bandwidth-delay product.
double bytes_on_way(const Link& link) {
  const double us_per_byte = std::max(link.send_us_per_byte, link.receive_us_per_byte);
  if (link.latency_us < kLongLatencyUs || us_per_byte <= 0) return 0;
  return link.latency_us / us_per_byte;
}

// True if all data is sent from and received into the callers' memory.
bool goes_straight(const Schedule& schedule) {
  return !is_reduction(schedule.collective) && schedule.leaves_from_memory;
}

}  // namespace

std::uint64_t hash(const ServerPlan& plan) {
  const std::uint64_t basis = kHashBasis ^ static_cast<std::uint64_t>(plan.everywhere);
  if (plan.parts.empty()) return hash(basis, plan.servers);
  std::vector<int> numbers = plan.servers;
  numbers.push_back(-1);  // separates ranks from parts
  numbers.insert(numbers.end(), plan.parts.begin(), plan.parts.end());
  return hash(basis, numbers);
}

std::uint64_t hash(std::span<const std::size_t> lengths) { return hash(kHashBasis, lengths); }

PlanCache::PlanCache(int rank, std::span<Channel* const> channels, std::span<const int> hosts,
                     std::size_t cache_bytes, std::pmr::memory_resource* memory)
    : rank_(rank),
      channels_(channels),
      hosts_(hosts),
      cache_bytes_(cache_bytes),
      memory_(memory == nullptr ? std::pmr::get_default_resource() : memory) {
  bool is_first = true;
  for (const Channel* channel : channels) {
    if (channel == nullptr) continue;
    const Capabilities& can = channel->capabilities();
    if (is_first) {
      segments_ = SegmentRule::of(can);
      credit_ = can.credit_segments;
    }
    respect(SegmentRule::of(can), can.credit_segments, can.can_answer);
    is_first = false;
  }
}

void PlanCache::respect(const SegmentRule& theirs, int credit, bool can_answer) {
  can_answer_ = can_answer_ && can_answer;
  segments_.preferred = std::min(segments_.preferred, theirs.preferred);
  segments_.longest = std::min(segments_.longest, theirs.longest);
  segments_.shortest = std::max(segments_.shortest, theirs.shortest);
  segments_.straight = std::min(segments_.straight, theirs.straight);
  credit_ = std::min(credit_, credit);
}

std::string PlanCache::limits() const {
  return fmt::format("{} {} {} {} {} {:d}", segments_.preferred, segments_.longest,
                     segments_.shortest, segments_.straight, credit_, can_answer_);
}

void PlanCache::respect(const std::string& limits) {
  std::istringstream words(limits);
  SegmentRule theirs;
  int credit = 0;
  bool can_answer = false;
  words >> theirs.preferred >> theirs.longest >> theirs.shortest >> theirs.straight >> credit >>
      can_answer;
  if (!words || credit < 1 || theirs.longest < kSegmentAlignment) {
    throw Error(ErrorCode::kProtocol, kNoPeer,
                "a rank published unreadable limits of its channels: does it run a different "
                "version of kolo?");
  }
  respect(theirs, credit, can_answer);
}

bool PlanCache::answers(const Key& key) const {
  return can_answer_ && key.data_bytes > kLeastAnswered;
}

Executor& PlanCache::find(const Key& key) {
  static const ServerPlan kNoServers;
  const ServerPlan& servers = key.servers == nullptr ? kNoServers : *key.servers;
  const bool can_answer = answers(key);
  for (const Plan& plan : plans_) {
    if (plan.algorithm == key.algorithm && plan.root == key.root && plan.peer == key.peer &&
        plan.has_update == key.has_update && plan.can_answer == can_answer &&
        plan.servers == servers) {
      return *plan.executor;
    }
  }
  auto executor = std::make_unique<Executor>(write(key, can_answer), channels_, cache_bytes_,
                                             sends_header_alone_, memory_);
  plans_.push_back({key.algorithm, key.root, key.peer, key.has_update, can_answer, servers,
                    std::move(executor)});
  return *plans_.back().executor;
}

Schedule PlanCache::write(const Key& key, bool can_answer) const {
  PlanRequest request;
  const int size = static_cast<int>(channels_.size());
  request.ranks = {rank_, size, key.root, key.peer, can_answer, hosts_};
  if (key.servers != nullptr) request.servers = request_of(*key.servers, rank_, size);
  request.servers.can_answer = can_answer;
  request.servers.has_update = key.has_update;
  return algorithms()[key.algorithm].write(request);
}

void PlanCache::suit_devices(bool is_one_with_host) {
  can_answer_ = false;
  sends_header_alone_ = is_one_with_host;
  if (!is_one_with_host) return;
  // The longest segment of streams over a transport that stages them in host memory.
  segments_.longest = std::min(segments_.longest, StagedSettings().longest_segment_bytes);
  segments_.preferred = std::min(segments_.preferred, segments_.longest);
  segments_.shortest = std::min(segments_.shortest, segments_.longest);
  segments_.straight = std::min(segments_.straight, segments_.longest);
}

SegmentRule SegmentRule::of(const Capabilities& channel) {
  const std::size_t preferred = channel.preferred_segment_bytes;
  const std::size_t straight = channel.straight_segment_bytes;
  return {preferred, channel.segment_bytes, channel.shortest_segment_bytes,
          straight == 0 ? preferred : straight};
}

// Channels with shortest >= preferred should not get shorter segments. Their segments are cut only
// if the next rank can start with a part. If sums arrive in views and no slot is filled, views of
// twice the length still use less memory than slots.
std::size_t SegmentRule::bytes(const Schedule& schedule, std::size_t chunk_bytes, std::size_t asked,
                               bool is_scaled) const {
  if (asked == 0) {
    const bool is_straight = goes_straight(schedule);
    const bool has_no_slots = is_straight || (schedule.leaves_from_memory && !is_scaled);
    const bool is_passed_on = schedule.size > 2 && schedule.collective != Collective::kMessage;
    const std::size_t viewed = std::max(preferred, std::min(straight, 2 * preferred));
    const std::size_t most = is_straight ? straight : has_no_slots ? viewed : preferred;
    const bool is_whole = has_no_slots && !is_passed_on && shortest >= preferred;
    return std::min(choose_segment_bytes(chunk_bytes, most, is_whole ? most : shortest), longest);
  }
  const std::size_t whole = asked / kSegmentAlignment * kSegmentAlignment;
  return std::clamp(whole, kSegmentAlignment, longest);
}

SegmentRule SegmentRule::suited_to(const Costs& costs) const {
  const double way = std::max(bytes_on_way(costs.local), bytes_on_way(costs.remote));
  const double wanted = std::min(way * kShareOfWay, static_cast<double>(longest));
  if (wanted <= static_cast<double>(preferred)) return *this;
  SegmentRule rule = *this;
  rule.preferred = rule.shortest =
      static_cast<std::size_t>(wanted) / kSegmentAlignment * kSegmentAlignment;
  rule.straight = std::max(rule.straight, rule.preferred);
  return rule;
}

void PlanCache::require_carried(std::size_t element_bytes) const {
  if (element_bytes <= segments_.longest) return;
  throw std::invalid_argument(
      fmt::format("an element of {} bytes is longer than the {} bytes of the longest segment of "
                  "these channels; set a larger KOLO_SEGMENT_BYTES",
                  element_bytes, segments_.longest));
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

}  // namespace kolo::inline v0
