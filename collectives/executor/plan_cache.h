// Cache of written and compiled schedules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/costs.h"
#include "collectives/executor/executor.h"
#include "collectives/schedule.h"
#include "transports/transport.h"

namespace kolo::inline v0 {

// 16-bit hashes that distinguish server plans, and lists of lengths.
std::uint64_t hash(const ServerPlan& plan);
std::uint64_t hash(std::span<const std::size_t> lengths);

// Up to this size there is no answer in place: the segment travels with its header in one cache
// line, and an answer would need a slot of its own.
inline constexpr std::size_t kLeastAnswered = 2 * kInlinePayloadBytes;

// Segment lengths, derived from all channels.
struct SegmentRule {
  std::size_t preferred = 64 * 1024;  // minimum over all channels
  std::size_t longest = 64 * 1024;
  std::size_t shortest = 8 * 1024;   // maximum over all channels
  std::size_t straight = 64 * 1024;  // minimum; for data that needs no slot or view

  static SegmentRule of(const Capabilities& channel);

  // Segment length for the schedule's chunks of `chunk_bytes`. `asked` is the caller's wish; 0: the
  // channels' preference. `is_scaled`: a scaled sum, whose input is scaled into slots.
  std::size_t bytes(const Schedule& schedule, std::size_t chunk_bytes, std::size_t asked,
                    bool is_scaled = false) const;

  // The rule for these costs. A schedule has about two segments in flight per channel. On a long
  // fat network (latency longer than a segment takes to send) the wire would be idle. There a
  // segment is as long as the data in flight, up to the channels' limit.
  SegmentRule suited_to(const Costs& costs) const;
};

class PlanCache {
 public:
  // `channels`: by rank, null for `rank`. `hosts`: by rank, as in ScheduleRequest. Both are
  // borrowed. `cache_bytes`, `memory`: for the executors; null: the default.
  PlanCache(int rank, std::span<Channel* const> channels, std::span<const int> hosts,
            std::size_t cache_bytes = std::numeric_limits<std::size_t>::max(),
            std::pmr::memory_resource* memory = nullptr);

  // Identifies a schedule. `data_bytes` only decides whether answers in place are worth it.
  struct Key {
    std::uint8_t algorithm = 0;
    int root = 0;
    int peer = 0;
    bool has_update = false;
    const ServerPlan* servers = nullptr;  // push_pull only
    std::size_t data_bytes = 0;           // the same on all ranks
  };

  // The executor of a schedule, made at first use. Throws std::invalid_argument for an impossible
  // server plan.
  Executor& find(const Key& key);
  // The schedule alone, not cached. `can_answer`: as in ScheduleRequest.
  Schedule write(const Key& key, bool can_answer) const;

  // Some ranks have devices: no schedule answers in place. With `is_one_with_host` streams use the
  // same segments as these channels: then headers carry no payload, and segments are at most as
  // long as streams accept.
  void suit_devices(bool is_one_with_host);

  // The limits of this rank's channels as a text, and how other ranks' limits are respected. On
  // several hosts the channels of the ranks differ, but all ranks must plan alike. Error kProtocol
  // if the text is unreadable.
  std::string limits() const;
  void respect(const std::string& limits);

  const SegmentRule& segments() const { return segments_; }
  void suit(const Costs& costs) { segments_ = segments_.suited_to(costs); }
  bool can_answer() const { return can_answer_; }  // all channels can
  int credit() const { return credit_; }           // minimum over all channels

  // Throws std::invalid_argument if an element does not fit into one segment.
  void require_carried(std::size_t element_bytes) const;

  std::uint64_t header_bytes_sent() const;
  std::uint64_t header_bytes_received() const;

 private:
  struct Plan {
    std::uint8_t algorithm = 0;
    int root = 0;
    int peer = 0;
    bool has_update = false;
    bool can_answer = false;
    ServerPlan servers;
    std::unique_ptr<Executor> executor;
  };

  bool answers(const Key& key) const;
  void respect(const SegmentRule& segments, int credit, bool can_answer);

  int rank_;
  std::span<Channel* const> channels_;
  std::span<const int> hosts_;
  std::size_t cache_bytes_;
  std::pmr::memory_resource* memory_;
  bool can_answer_ = true;
  bool sends_header_alone_ = false;
  int credit_ = kMinimumCredit;
  SegmentRule segments_;
  std::vector<Plan> plans_;
};

}  // namespace kolo::inline v0
