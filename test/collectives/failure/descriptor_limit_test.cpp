// A rank without a free descriptor keeps a peer waiting: all ranks are told the reason.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/transports/support/descriptor_limit.h"
#include "transports/rendezvous.h"

namespace kolo::test {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMoreThanIsBuffered = 16 << 20;

Deadline soon() { return Clock::now() + 60s; }

// Limits the process to `free` more descriptors.
struct FewDescriptors {
  explicit FewDescriptors(int free) {
    for (int i = 0; i < free; ++i) spare.emplace_back(::dup(0));
    limit.emplace();
    spare.clear();
  }
  std::vector<posix::Descriptor> spare;
  std::optional<DescriptorLimit> limit;
};

void wait_for_reason(Store& store) {
  const Deadline patience = soon();
  while (Clock::now() < patience) {
    const auto published = store.try_get("world/1/awaited/1").value_or("");
    if (published.find("no file descriptor is left") != std::string::npos) return;
    std::this_thread::yield();
  }
  expect(false, "rank 1 publishes that it has no descriptor");
}

}  // namespace

// Rank 1 waits for rank 2, and needs no connection to rank 0, which sends to rank 1.
TEST_CASE("a timeout tells all ranks that a rank has no descriptor for its peer's connection") {
  const std::string transport = GENERATE("tcp", "shm");
  const int for_rank_0 = transport == "tcp" ? 1 : 2;  // a socket, and its memory
  const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = 60s;
    options.reproducibility = Reproducibility::kOrdered;  // measures nothing
    Communicator communicator(rank, 3, store, options);
    std::int32_t word = 0;
    const Buffer buffer{&word, 1, ElementType::kInt32};
    if (rank == 2) {
      communicator.send(buffer, 1);
      while (!communicator.failure()) std::this_thread::yield();
      throw *communicator.failure();
    }
    if (rank == 1) {
      communicator.receive(buffer, 2);
      store->set("rank 1 is connected to rank 2", "");
      store->get("descriptors are few", soon());
      communicator.receive(buffer, 2);
    }
    store->get("rank 1 is connected to rank 2", soon());
    const FewDescriptors few(for_rank_0);
    store->set("descriptors are few", "");
    communicator.send(buffer, 1);
    wait_for_reason(*store);
    std::vector<std::int32_t> many(kMoreThanIsBuffered);
    communicator.send({many.data(), many.size(), ElementType::kInt32}, 1, {.timeout = 100ms});
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kDeadline);
    CHECK_THAT(outcome.text, ContainsSubstring("\n  rank 1: no file descriptor is left") &&
                                 ContainsSubstring("ulimit -n"));
  }
}

}  // namespace kolo::test
