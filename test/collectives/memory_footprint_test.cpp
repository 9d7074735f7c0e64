// Memory that a job needs beside its users' buffers: bounded per pair of ranks, whatever the
// message size.
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <limits>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"

namespace kolo::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kLong = 20 * kMiB;

// Both ranks of the pair are threads of this process. libfabric keeps buffers of its own, and a
// sanitizer keeps freed memory.
std::size_t most_bytes([[maybe_unused]] std::string_view transport) {
#if defined(__SANITIZE_ADDRESS__)
  return 16 * kMiB;
#else
  if (transport == "ofi") return 12 * kMiB;
  return transport == "tcp" ? 7 * kMiB / 2 : 4 * kMiB;
#endif
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

long faults_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

// The shared memory that this process has mapped. Each piece counts once, whichever rank mapped it:
// pieces are told apart by inode.
std::size_t shared_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::map<std::string, std::size_t> files;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:kolo") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, rights, offset, device, number;
    words >> range >> rights >> offset >> device >> number;
    const std::size_t dash = range.find('-');
    files[number] = std::stoull(range.substr(dash + 1), nullptr, 16) -
                    std::stoull(range.substr(0, dash), nullptr, 16);
  }
  std::size_t sum = 0;
  for (const auto& [number, bytes] : files) sum += bytes;
  return sum;
}

void run(Communicator& communicator, Collective collective, std::string_view algorithm,
         std::vector<float>& data, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float);
  const CallOptions call{.algorithm = algorithm};
  float* const x = data.data();
  switch (collective) {
    case Collective::kAllReduce:
      return communicator.all_reduce({x, count, ElementType::kFloat32}, ReduceOp::kSum, call);
    case Collective::kReduceScatter:
      return communicator.reduce_scatter(
          {x, count, ElementType::kFloat32},
          {x + static_cast<std::size_t>(communicator.rank()) * count / 2,
           chunk_count(count, communicator.size(), communicator.rank()), ElementType::kFloat32},
          ReduceOp::kSum, call);
    case Collective::kAllGather:
      return communicator.all_gather(
          {x + static_cast<std::size_t>(communicator.rank()) * count / 2,
           chunk_count(count, communicator.size(), communicator.rank()), ElementType::kFloat32},
          {x, count, ElementType::kFloat32}, call);
    case Collective::kAllToAll:
      return communicator.all_to_all({x, count, ElementType::kFloat32},
                                     {x, count, ElementType::kFloat32}, call);
    case Collective::kBroadcast:
      return communicator.broadcast({x, count, ElementType::kFloat32}, 0, call);
    default:
      throw std::invalid_argument("no such collective in this test");
  }
}

}  // namespace

TEST_CASE(
    "a pair of ranks needs little memory beside the buffers, and it does not grow with the "
    "message") {
  for (const std::string& transport : transports_under_test()) {
    for (const Collective collective :
         {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
          Collective::kAllToAll, Collective::kBroadcast}) {
      for (const std::string_view algorithm : algorithm_names(collective)) {
        DYNAMIC_SECTION(transport << ", " << to_string(collective) << " by " << algorithm) {
          run_ranks(2, transport, [&](Communicator& communicator) {
            std::vector<float> data(kLong / sizeof(float), 1.0F);
            communicator.barrier();
            communicator.barrier();  // after it, all have left the first one
            const std::size_t before = resident_bytes();
            communicator.barrier();
            run(communicator, collective, algorithm, data, kLong);
            communicator.barrier();
            const std::size_t after = resident_bytes();
            expect(after < before + most_bytes(transport),
                   std::to_string((after - before) / kMiB) + " MiB for a message of 20 MiB");
            communicator.barrier();
          });
        }
      }
    }
  }
}

// Page faults: if an operation touched new pages each time, it would cost hundreds of faults in
// every round. A sanitizer's own memory may grow in one of them.
TEST_CASE("repeated operations touch no new pages") {
  for (const std::string transport : {"shm", "tcp"}) {
    for (const std::size_t bytes : {std::size_t{4096}, kIsSanitized ? kMiB / 4 : 8 * kMiB}) {
      DYNAMIC_SECTION(transport << ", " << bytes << " bytes") {
        run_ranks(2, transport, [&](Communicator& communicator) {
          std::vector<float> data(bytes / sizeof(float), 1.0F);
          for (int i = 0; i < 8; ++i) run(communicator, Collective::kAllReduce, "", data, bytes);
          long faults = std::numeric_limits<long>::max();
          for (int round = 0; round < 3; ++round) {
            const long before = faults_of_this_thread();
            for (int i = 0; i < 40; ++i) run(communicator, Collective::kAllReduce, "", data, bytes);
            faults = std::min(faults, faults_of_this_thread() - before);
          }
          expect(faults < 40, std::to_string(faults) + " faults in 40 operations");
        });
      }
    }
  }
}

TEST_CASE("a pair of ranks shares 4 MiB at most, its longest segments included") {
  constexpr std::size_t kOfAPair = 4 * kMiB;
  constexpr std::size_t kBeside = 64 * 1024;  // control blocks, frames, and padding between slots
  CommunicatorOptions options;
  options.segment_bytes = GENERATE(std::size_t{0}, std::size_t{512} * 1024);
  const std::size_t before = shared_bytes();
  const auto body = [&](Communicator& communicator) {
    std::vector<float> data(kLong / sizeof(float), 1.0F);
    run(communicator, Collective::kAllReduce, "", data, kLong);
    communicator.barrier();
    const std::size_t shared = shared_bytes() - before;
    expect(shared > 0, "ranks that share nothing");
    expect(shared <= kOfAPair + kBeside, std::to_string(shared) + " bytes shared by a pair");
    communicator.barrier();
  };
  run_ranks(2, "shm", body, options);
}

}  // namespace kolo::test
