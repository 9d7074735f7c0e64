// Ranks in one process that watch one another with PeerLiveness.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "transports/base/liveness.h"

namespace kolo::test {

struct LivenessRanks {
  explicit LivenessRanks(int size) {
    for (int rank = 0; rank < size; ++rank)
      all.push_back(std::make_unique<PeerLiveness>(rank, size));
    know();
  }

  // Acts as if each rank were on a host of its own: liveness connections then use TCP.
  void move_apart() {
    is_apart = true;
    know();
  }

  void know() {
    for (std::size_t reader = 0; reader < all.size(); ++reader) all[reader]->know(known_to(reader));
  }

  std::vector<LivenessAddress> known_to(std::size_t reader) const {
    std::vector<LivenessAddress> addresses;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      addresses.push_back(all[rank]->address());
      addresses.back().tcp_host = "127.0.0.1";
      if (is_apart && rank != reader) addresses.back().host_identity = "elsewhere";
    }
    return addresses;
  }

  PeerLiveness& operator[](int rank) { return *all[static_cast<std::size_t>(rank)]; }

  // Calls look() on all ranks until `is_so`, for at most 10 s.
  template <typename Condition>
  bool until(const Condition& is_so) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (!is_so()) {
      if (Clock::now() > deadline) return false;
      for (const auto& each : all) {
        if (each) each->look();
      }
    }
    return true;
  }

  std::vector<std::unique_ptr<PeerLiveness>> all;
  bool is_apart = false;
};

}  // namespace kolo::test
