// What a job takes beside its users' buffers: bounded for each pair of ranks, whatever the message.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "collectives/algorithm_table.h"
#include "test/collectives/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kShort = 1 * kMiB;
constexpr std::size_t kLong = 48 * kMiB;

// Two ranks are threads of this process, which maps what a pair shares twice: at most 4 MiB each.
// As much again for what the allocator keeps.
constexpr std::size_t kMost = 16 * kMiB;

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void run(Communicator& communicator, Collective collective, std::string_view algorithm,
         std::vector<float>& data, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const CallOptions call{.algorithm = algorithm};
  float* const x = data.data();
  switch (collective) {
    case Collective::kAllReduce:
      return communicator.all_reduce(x, x, count, ElementType::kFloat32, ReduceOp::kSum, call);
    case Collective::kReduceScatter:
      return communicator.reduce_scatter(
          x, x + static_cast<std::size_t>(communicator.rank()) * count / 2, count,
          ElementType::kFloat32, ReduceOp::kSum, call);
    case Collective::kAllGather:
      return communicator.all_gather(x + static_cast<std::size_t>(communicator.rank()) * count / 2,
                                     x, count, ElementType::kFloat32, call);
    case Collective::kAllToAll:
      return communicator.all_to_all(x, x, count, ElementType::kFloat32, call);
    case Collective::kBroadcast:
      return communicator.broadcast(x, count, ElementType::kFloat32, 0, call);
    default:
      throw std::invalid_argument("no such collective in this test");
  }
}

}  // namespace

TEST_CASE("what a pair of ranks takes beside the buffers does not grow with the message") {
  for (const std::string& transport : transports_under_test()) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
          Collective::kAllToAll, Collective::kBroadcast}) {
      for (const std::string_view algorithm : algorithm_names(collective)) {
        DYNAMIC_SECTION(transport << ", " << to_string(collective) << " by " << algorithm) {
          run_ranks(2, transport, [&](Communicator& communicator) {
            std::vector<float> data(kLong / sizeof(float), 1.0F);
            run(communicator, collective, algorithm, data, kShort);
            communicator.barrier();
            const std::size_t before = resident_bytes();
            communicator.barrier();
            run(communicator, collective, algorithm, data, kLong);
            communicator.barrier();
            const std::size_t after = resident_bytes();
            expect(after < before + kMost,
                   std::to_string((after - before) / kMiB) + " MiB more for a message of 48 MiB");
            communicator.barrier();
          });
        }
      }
    }
  }
}

}  // namespace kolo::test
