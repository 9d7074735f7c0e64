#include "bench/device/copy_limit.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/device/library_on_device.h"
#include "bench/measure/statistics.h"
#include "transports/error.h"

namespace kolo::bench {
namespace {

constexpr std::size_t kFewestRounds = 3;
constexpr std::size_t kMostRounds = 1000;

// Bytes that are in their place from the start, so they are neither read nor written.
std::size_t bytes_in_place(const Problem& problem, int ranks) {
  const std::size_t all = problem.count * element_bytes(problem.type);
  const std::size_t roots = chunk_count(problem.count, ranks, kRoot) * element_bytes(problem.type);
  switch (problem.is_in_place ? problem.collective : Collective::kBarrier) {
    case Collective::kAllGather:
      return all;  // every rank's own chunk, input and output
    case Collective::kPull:
      return problem.servers == 0 ? all : 0;
    case Collective::kGather:
    case Collective::kScatter:
      return 2 * roots;
    default:
      return 0;
  }
}

}  // namespace

std::size_t bytes_on_device(const Problem& problem, int ranks) {
  std::size_t bytes = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Moved moved = moved_by(problem, rank, ranks);
    bytes += moved.in_bytes + moved.out_bytes;
  }
  return bytes - bytes_in_place(problem, ranks);
}

std::optional<double> copies_on_device_us(DeviceMemory& device, const Problem& problem, int ranks,
                                          double seconds) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  const std::size_t copied = (bytes_on_device(problem, ranks) + 1) / 2;
  if (copied == 0) return std::nullopt;
  const std::size_t buffers = problem.count * element_bytes(problem.type) *
                              static_cast<std::size_t>(ranks) * (problem.is_in_place ? 1 : 2);
  const std::size_t half = std::clamp<std::size_t>(buffers / 2, 1, copied);
  std::shared_ptr<std::byte[]> from;
  std::shared_ptr<std::byte[]> to;
  try {
    from = device.allocate(half);
    to = device.allocate(half);
  } catch (const Error&) {
    return std::nullopt;
  }
  std::vector<double> times_us;
  const auto copy_all = [&] {
    for (std::size_t done = 0; done < copied; done += half)
      device.copy(to.get(), from.get(), std::min(half, copied - done));
    device.wait();
  };
  copy_all();  // the memory's first touch
  const auto beginning = Clock::now();
  do {
    const auto before = Clock::now();
    copy_all();
    times_us.push_back(Microseconds(Clock::now() - before).count());
  } while (times_us.size() < kFewestRounds ||
           (times_us.size() < kMostRounds &&
            Microseconds(Clock::now() - beginning).count() < seconds * 1e6));
  return quantile(times_us, 0.5);
}

}  // namespace kolo::bench
