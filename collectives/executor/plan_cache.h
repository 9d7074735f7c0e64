// Schedules that were written and compiled before: looked up by what makes them differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/costs.h"
#include "collectives/executor/executor.h"
#include "collectives/schedule.h"
#include "transports/transport.h"

namespace kolo {

// 16 bits that tell server plans apart, and lists of lengths.
std::uint64_t hash(const ServerPlan& plan);
std::uint64_t hash(std::span<const std::size_t> lengths);

// Up to here a segment travels with its header, in a cache line; an answer in place would need a
// slot beside it.
inline constexpr std::size_t kLeastAnswered = 2 * kInlinePayloadBytes;

// How long segments are, as the channels have it.
struct SegmentRule {
  std::size_t preferred = 64 * 1024;  // the least of all channels
  std::size_t longest = 64 * 1024;
  std::size_t shortest = 8 * 1024;   // the most of all channels
  std::size_t straight = 64 * 1024;  // the least; of what needs no slot or view, and is preferred

  static SegmentRule of(const Capabilities& channel);

  // Of the schedule's chunks, of so many bytes; `asked` 0 leaves it to the channels' preference.
  // `is_scaled`: by a scaled sum, whose input is scaled into slots.
  std::size_t bytes(const Schedule& schedule, std::size_t chunk_bytes, std::size_t asked,
                    bool is_scaled = false) const;

  // For these costs: a schedule has two segments or so under way on a channel, so on a long fat
  // network (whose latency is longer than a segment takes to pass) the wire would be idle while it
  // waits. There a segment is as long as what fits on the way, as far as the channels carry it.
  SegmentRule suited_to(const Costs& costs) const;
};

class PlanCache {
 public:
  // `channels`: by rank, null for `rank` itself; `hosts`: by rank, as in ScheduleRequest. Both
  // borrowed. `cache_bytes`: of the executors.
  PlanCache(int rank, std::span<Channel* const> channels, std::span<const int> hosts,
            std::size_t cache_bytes = std::numeric_limits<std::size_t>::max());

  // What tells one schedule from another, `data_bytes` apart: small data is not worth an answer in
  // place.
  struct Key {
    std::uint8_t algorithm = 0;
    int root = 0;
    int peer = 0;
    bool has_update = false;
    const ServerPlan* servers = nullptr;  // of push_pull
    std::size_t data_bytes = 0;           // the same on all ranks
  };

  // The executor of a schedule, made at first use. std::invalid_argument for a plan that no
  // schedule can serve.
  Executor& find(const Key& key);
  // The schedule itself.
  Schedule write(const Key& key) const;

  // There are ranks with devices: nothing is answered. With `is_one_with_host`, where streams'
  // segments are those of these channels, openings go alone, and segments are as long as streams
  // take them.
  void suit_devices(bool is_one_with_host);

  const SegmentRule& segments() const { return segments_; }
  void suit(const Costs& costs) { segments_ = segments_.suited_to(costs); }
  bool can_answer() const { return can_answer_; }  // every channel
  int credit() const { return credit_; }           // the least of all channels

  // std::invalid_argument where no segment of these channels holds an element of so many bytes.
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

  int rank_;
  std::span<Channel* const> channels_;
  std::span<const int> hosts_;
  std::size_t cache_bytes_;
  bool can_answer_ = true;
  bool sends_header_alone_ = false;
  int credit_ = kMinimumCredit;
  SegmentRule segments_;
  std::vector<Plan> plans_;
};

}  // namespace kolo
