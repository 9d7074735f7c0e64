// One rank of a job with key servers in which a rank dies: a program for killed_key_rank_test.cpp.
//
//   crashing_key_rank TRANSPORT VICTIM ITERATION
//
// Ranks 0 and 1 are servers, the others push and pull. A worker kills itself with a request of
// ITERATION in flight, a server within the update of it. The other ranks print their error and exit
// with 3. Exit code 0 means that nothing failed.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "collectives/key_server.h"

namespace {

constexpr int kIterations = 10;
constexpr std::size_t kShare = 300'000;

void serve(kolo::Communicator& communicator, const kolo::KeyPlan& plan, std::int64_t last) {
  std::vector<float> values(plan.elements);
  kolo::serve_keys(communicator, plan, values,
                   [&](const kolo::KeyUpdate& update) {
                     if (update.iteration == last) std::raise(SIGKILL);
                   },
                   {.consistency = {kolo::Consistency::Kind::kAsynchronous, 0}});
}

void work(kolo::Communicator& communicator, const kolo::KeyPlan& plan, std::int64_t last) {
  kolo::KeyClient client(communicator, plan);
  std::vector<float> data(plan.elements);
  for (std::int64_t iteration = 0; iteration < kIterations; ++iteration) {
    for (std::size_t key = 0; key < plan.keys.size(); ++key) {
      const std::span<float> part =
          std::span(data).subspan(plan.keys[key].first, plan.keys[key].count);
      client.push_pull(key, iteration, part, 1, part);
      if (iteration == last && key == 1) std::raise(SIGKILL);
    }
    client.wait_all();
  }
  client.finish();
}

void run(const std::string& transport, int victim, std::int64_t iteration) {
  kolo::CommunicatorOptions options;
  options.transport = transport;
  options.timeout = std::chrono::seconds(60);
  auto communicator = kolo::Communicator::from_environment(options);
  const kolo::KeyPlan plan = kolo::plan_keys(std::vector<kolo::KeyRange>{{0, {kShare, kShare}}},
                                             std::vector<int>{0, 1}, 100'000);
  const bool is_victim = communicator.rank() == victim;
  const std::int64_t last = is_victim ? iteration : -1;
  communicator.rank() < 2 ? serve(communicator, plan, last) : work(communicator, plan, last);
  communicator.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]));
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
