#include "transports/launch/descriptor_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "transports/posix/descriptor.h"

namespace kolo::inline v0::launch {
namespace {

// Largest number of descriptors open in this process while it launches. `with_store`: each rank
// that is already running has a connection to the store.
int descriptors_needed(std::span<const LaunchRequest> requests, int open_now, bool with_store) {
  constexpr int kSignals = 1;
  constexpr int kOutputs = 2;        // standard output and error, opened again
  constexpr int kOwn = 6;            // of a job: the reaper, three or four of the store, a port
  constexpr int kWhileStarting = 6;  // both ends of three pipes
  int needed = open_now + kSignals + kOutputs + kWhileStarting;
  for (const LaunchRequest& request : requests) {
    const int plain = request.output == RankOutput::kRankZeroPlain ? 1 : 0;
    const int before_last = 2 * std::max(request.ranks - 1 - plain, 0);
    needed += kOwn + before_last + (with_store ? request.ranks - 1 : 0);
  }
  return needed + 2 * static_cast<int>(requests.size() - 1);
}

int open_descriptors(int limit) {
  constexpr int kMany = 4096;  // with more there is no need to count
  int count = 0;
  for (int i = 0; i < std::min(limit, kMany); ++i) count += fcntl(i, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

}  // namespace

std::string why_too_few_descriptors(std::span<const LaunchRequest> requests, bool with_store) {
  rlimit limit{};
  constexpr rlim_t kMost = 1 << 20;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > kMost) return {};
  const int allowed = static_cast<int>(limit.rlim_cur);
  const int needed = descriptors_needed(requests, open_descriptors(allowed), with_store);
  if (needed <= allowed) return {};
  int ranks = 0;
  for (const LaunchRequest& request : requests) ranks += request.ranks;
  return fmt::format("{}; to launch {} ranks it needs {}", posix::error_text(EMFILE), ranks,
                     needed);
}

}  // namespace kolo::inline v0::launch
