// Asynchronous parameter server: rank 0 holds the parameters and serves their keys. Each worker's
// gradient is applied when it arrives, and answered at once. Slow workers hold up no other.
//
//   kolo-run -n 3 example_async_server
//
// All workers minimise (x - 3)^2 for every parameter x; worker r takes 10 r iterations.
#include <cstdio>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/key_server.h"

namespace {

constexpr std::size_t kCount = 10'000;

void serve(kolo::Communicator& communicator, const kolo::KeyPlan& plan) {
  std::vector<float> parameters(kCount, 0.0F);
  const auto descend = [](const kolo::KeyUpdate& update) {
    const float rate = 0.25F / static_cast<float>(update.samples);
    for (std::size_t i = 0; i < update.values.size(); ++i)
      update.values[i] -= rate * update.gradient[i];
  };
  const auto statistics =
      kolo::serve_keys(communicator, plan, parameters, descend,
                       {.consistency = {.kind = kolo::Consistency::Kind::kAsynchronous}});
  std::printf("server: %llu updates\n", static_cast<unsigned long long>(statistics.updates));
}

void work(kolo::Communicator& communicator, const kolo::KeyPlan& plan) {
  kolo::KeyClient client(communicator, plan);
  std::vector<float> x(kCount, 0.0F);
  std::vector<float> gradients(kCount);
  for (int iteration = 0; iteration < 10 * communicator.rank(); ++iteration) {
    for (std::size_t i = 0; i < kCount; ++i) gradients[i] = 2 * (x[i] - 3);
    for (std::size_t i = 0; i < plan.keys.size(); ++i) {
      const kolo::Key key = plan.keys[i];
      client.push_pull(i, iteration, std::span(gradients).subspan(key.first, key.count), 1,
                       std::span(x).subspan(key.first, key.count));
    }
    client.wait_all();
  }
  client.finish();
  std::printf("worker %d: x = %.2f\n", communicator.rank(), static_cast<double>(x[kCount - 1]));
}

}  // namespace

int main() try {
  auto communicator = kolo::Communicator::from_environment();
  const std::vector<kolo::KeyRange> arena = {{.first = 0, .shares = {kCount}}};
  const kolo::KeyPlan plan = kolo::plan_keys(arena, std::vector<int>{0}, 4'000);
  communicator.rank() == 0 ? serve(communicator, plan) : work(communicator, plan);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
