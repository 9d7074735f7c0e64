// Schedules that were written and compiled before: looked up by what makes them differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/executor.h"

namespace kolo {

// 16 bits that tell server plans apart.
std::uint64_t hash(const ServerPlan& plan);

class PlanCache {
 public:
  // `channels`: by rank, null for `rank` itself. Borrowed.
  PlanCache(int rank, std::span<Channel* const> channels);

  // What tells one schedule from another, `data_bytes` apart: small data is not worth an answer in
  // place.
  struct Key {
    std::uint8_t algorithm = 0;
    int root = 0;
    bool has_update = false;
    const ServerPlan* servers = nullptr;  // of push_pull
    std::size_t data_bytes = 0;           // the same on all ranks
  };

  // The executor of a schedule, made at first use. std::invalid_argument for a plan that no
  // schedule can serve.
  Executor& find(const Key& key);

  // Bytes per segment of an operation over `executor`; `asked` 0 leaves it to the channels'
  // preference.
  std::size_t segment_bytes(const Executor& executor, std::size_t count, ElementType type,
                            std::size_t asked) const;

  std::uint64_t header_bytes_sent() const;
  std::uint64_t header_bytes_received() const;

 private:
  struct Plan {
    std::uint8_t algorithm = 0;
    int root = 0;
    bool has_update = false;
    bool can_answer = false;
    ServerPlan servers;
    std::unique_ptr<Executor> executor;
  };

  void make(Plan& plan) const;

  int rank_;
  std::span<Channel* const> channels_;
  bool can_answer_ = true;
  std::size_t preferred_ = 64 * 1024;  // the least of all channels
  std::size_t longest_ = 64 * 1024;
  std::vector<Plan> plans_;
};

}  // namespace kolo
