// All-reduces of one rank on a device, compared with the host's sums. The ranks of a job are
// processes (device_sum_rank.cpp) or threads (device_streams_test.cpp).
//
// All throw if a result is wrong. Freeing memory may wait for all streams of the device's context,
// also for those of other ranks in the process. So no rank frees anything before all have finished.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "collectives/communicator.h"

namespace kolo::test {

inline constexpr std::chrono::seconds kDevicePatience{60};
inline constexpr std::size_t kSumCounts[] = {1, 5003, 3'000'001};
inline constexpr std::string_view kSumAlgorithms[] = {"ring", "two_shot", "recursive_doubling"};

struct SumRank {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Store> store;
  int devices = 1;  // rank r uses device r % devices; 0: this rank has none
};

// In place, several times, by an executor of its own over cuda_ipc channels. `host` carries what is
// not on the device.
void sum_by_schedule(const SumRank& job, std::string_view host, std::string_view algorithm,
                     std::size_t count);

// Blocking and asynchronous calls of a communicator over `transport`. Ranks without a device take
// part with host memory.
void sum_by_communicator(const SumRank& job, const std::string& transport, std::size_t count);

}  // namespace kolo::test
