// One rank of a job in which another rank dies: a program for killed_rank_test.cpp.
//
//   crashing_rank TRANSPORT VICTIM OPERATION POLLS
//
// Issues collectives in a loop. The victim issues number OPERATION, makes progress POLLS times, and
// kills itself. The other ranks print their error and exit with 3. Exit code 0 means that nothing
// failed.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace {

constexpr int kOperations = 12;
constexpr std::size_t kCount = 200'000;

kolo::Work issue(kolo::Communicator& communicator, int number, std::vector<float>& in,
                 std::vector<float>& out) {
  const auto type = kolo::ElementType::kFloat32;
  const auto sum = kolo::ReduceOp::kSum;
  switch (number % 6) {
    case 0:
      return communicator.all_reduce_async({in.data(), kCount, type}, {out.data(), kCount, type},
                                           sum);
    case 1:
      return communicator.broadcast_async({in.data(), kCount, type}, 0);
    case 2:
      return communicator.push_pull_async({in.data(), kCount, type}, {out.data(), kCount, type},
                                          sum, {.everywhere = true, .servers = {}});
    case 3:
      return communicator.reduce_scatter_async(
          {in.data(), kCount, type},
          {out.data(), kolo::chunk_count(kCount, communicator.size(), communicator.rank()), type},
          sum);
    case 4:
      return communicator.all_gather_async(
          {in.data(), kolo::chunk_count(kCount, communicator.size(), communicator.rank()), type},
          {out.data(), kCount, type});
    default:
      return communicator.barrier_async();
  }
}

int run(const std::string& transport, int victim, int operation, int polls) {
  kolo::CommunicatorOptions options;
  options.transport = transport;
  options.timeout = std::chrono::seconds(60);
  options.segment_bytes = 4096;  // many segments, so many points at which to die
  auto communicator = kolo::Communicator::from_environment(options);
  std::vector<float> in(kCount, 1.0F);
  std::vector<float> out(kCount);
  for (int number = 0; number < kOperations; ++number) {
    kolo::Work work = issue(communicator, number, in, out);
    if (communicator.rank() == victim && number == operation) {
      for (int i = 0; i < polls; ++i) communicator.progress();
      std::raise(SIGKILL);
    }
    work.wait();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    return run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
