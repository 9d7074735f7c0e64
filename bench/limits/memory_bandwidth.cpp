// Memory bandwidth: every core works on its own buffer, all at once. Bytes read and bytes written
// both count.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "bench/limits/kernels.h"
#include "bench/limits/limits.h"
#include "bench/limits/thread_team.h"
#include "bench/measure/cache_line.h"
#include "bench/measure/cores.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLeastPerRound =
    8 * kMiB;  // small buffers are repeated, so that the clock's cost is negligible
constexpr double kSecondsEach = 0.3;

std::size_t cache_bytes(int name, std::size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : otherwise;
}

using Sweep = std::function<void(float* data, std::size_t count)>;

struct Level {
  const char* name;
  std::size_t bytes;  // per core
};

std::vector<Level> levels(std::size_t cores) {
  const std::size_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, kMiB);
  const std::size_t l3 = std::max(cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 * kMiB), 4 * l2);
  return {{"L2", l2 / 4},
          {"L3", std::min(4 * l2, l3 / 2) / cores},
          {"DRAM", std::clamp(2 * l3, 256 * kMiB, 1024 * kMiB) / cores}};
}

Limit measure(const Level& level, int cores, const char* variant, const Sweep& sweep,
              std::size_t bytes_moved_each) {
  const std::size_t count = level.bytes / sizeof(float);
  std::vector<std::vector<float>> buffers(static_cast<std::size_t>(cores),
                                          std::vector<float>(count, 1.0F));
  const std::size_t sweeps = std::max<std::size_t>(1, kLeastPerRound / level.bytes);
  const Round round{{}, [&](int thread) {
                      for (std::size_t i = 0; i < sweeps; ++i)
                        sweep(buffers[static_cast<std::size_t>(thread)].data(), count);
                    }};
  CoreDistance distance;
  distance.add(cache_line_round_trip());
  std::vector<double> times = time_for(cores, kSecondsEach, round);
  distance.add(cache_line_round_trip());
  for (double& time : times) time /= static_cast<double>(sweeps);
  const Quantiles time = quantiles(times);
  const auto all = static_cast<std::size_t>(cores);
  return {"memory " + std::string(level.name),
          variant,
          level.bytes * all,
          time,
          gigabytes_per_second(bytes_moved_each * all, time.median),
          distance};
}

}  // namespace

std::vector<Limit> memory_limits(bool is_quick) {
  const std::size_t cores = available_cores().size();
  const auto in_place = [](float* data, std::size_t count) {
    scale_in_place(data, count, 1.0000001F);
  };
  const auto copy = [](float* data, std::size_t count) {
    std::memcpy(data, data + count / 2, count / 2 * sizeof(float));
  };
  std::vector<Limit> result;
  for (Level level : levels(cores)) {
    if (is_quick) level.bytes = std::min(level.bytes, 16 * kMiB);
    const int threads = static_cast<int>(cores);
    result.push_back(measure(level, threads, "read and write in place", in_place, 2 * level.bytes));
    result.push_back(measure(level, threads, "copy", copy, level.bytes));
  }
  return result;
}

}  // namespace kolo::bench
