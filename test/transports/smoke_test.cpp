#include <thread>
#include <vector>

#include "test/support/catch.h"
#include "transports/registry.h"
#include "transports/waiting.h"

using namespace kolo;

TEST_CASE("two threads send a number round") {
  const auto store = make_local_store();
  std::vector<std::thread> threads;
  std::vector<int> wrong(2, -1);
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto deadline = Clock::now() + std::chrono::seconds(20);
      TransportRequest request{rank, 2, prefixed(store, "t/"), deadline, 0, 2};
      const auto transport = make_transport("auto", request);
      auto& channel = transport->channel(1 - rank);
      WaitPolicy policy(2, 2);
      int errors = 0;
      for (int i = 0; i < 20000; ++i) {
        std::span<const std::byte> out(reinterpret_cast<const std::byte*>(&i), sizeof i);
        while (!channel.send(out)) policy.pause(*transport, *store, deadline);
        policy.moved();
        int got = 0;
        std::span<std::byte> in(reinterpret_cast<std::byte*>(&got), sizeof got);
        while (!channel.receive(in)) policy.pause(*transport, *store, deadline);
        policy.moved();
        errors += got != i;
      }
      wrong[static_cast<std::size_t>(rank)] = errors;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0});
}
