// Communicators in event loops: a descriptor to poll, and progress().
#include <poll.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr int kLimitMs = 20'000;

bool is_readable(Communicator& world, int limit_ms) {
  pollfd watched{world.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, limit_ms) == 1;
}

// Drives the communicator by its descriptor alone until the operation has ended.
void run_loop(Communicator& world, Work& work) {
  bool is_done = false;
  work.when_done([&](const Error*) { is_done = true; });
  while (!is_done) {
    expect(is_readable(world, kLimitMs), "the descriptor was not readable in time");
    world.progress();
  }
  work.wait();
}

}  // namespace

TEST_CASE("an event loop drives collectives and messages of every length") {
  for (const std::string& transport : transports_under_test()) {
    INFO(transport);
    run_ranks(3, transport, [](Communicator& world) {
      world.descriptor();
      for (const std::size_t count : {1u, 1000u, 300'000u}) {
        std::vector<std::int32_t> data(count, world.rank() + 1);
        Work sum = world.all_reduce_async(data);
        run_loop(world, sum);
        expect(std::ranges::all_of(data, [](auto value) { return value == 6; }), "a sum");
        std::vector<std::int32_t> got(count);
        Work receive = world.receive_async(got, (world.rank() + 2) % 3);
        Work send = world.send_async(data, (world.rank() + 1) % 3);
        run_loop(world, receive);
        run_loop(world, send);
        expect(got == data, "a message");
      }
      world.barrier();
    });
  }
}

TEST_CASE("the descriptor of an idle communicator is not readable") {
  run_ranks(2, "tcp", [](Communicator& world) {
    world.descriptor();
    Work barrier = world.barrier_async();
    run_loop(world, barrier);
    world.progress();
    expect(!is_readable(world, 0), "readable though nothing is in flight");
    world.barrier();
  });
}

TEST_CASE("an operation that another thread issues makes the descriptor readable") {
  run_ranks(2, "shm", [](Communicator& world) {
    world.descriptor();
    world.progress();
    Work work;
    std::thread issuer([&] { work = world.barrier_async(); });
    expect(is_readable(world, kLimitMs), "the operation was not noticed");
    issuer.join();
    run_loop(world, work);
  });
}

TEST_CASE("an event loop goes on beside blocking calls of another thread") {
  run_ranks(3, "shm", [](Communicator& world) {
    world.descriptor();
    const int next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
    std::uint8_t in = 0;
    const std::uint8_t out = 7;
    Work receive = world.receive_async({&in, 1, ElementType::kUint8}, next);
    std::thread other([&] {
      for (std::int32_t i = 0; i < 50; ++i) {
        std::int32_t got = -1;
        world.send_receive({&i, 1, ElementType::kInt32}, next, {&got, 1, ElementType::kInt32},
                           previous);
        if (got != i) world.abort("another message");
      }
      world.send({&out, 1, ElementType::kUint8}, previous);
    });
    run_loop(world, receive);
    other.join();
  });
}

TEST_CASE("a deadline makes the descriptor readable, and progress() then fails the operation") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = "tcp";
    Communicator world(rank, 2, store, options);
    world.barrier();
    std::int32_t value = 0;
    if (rank == 0) {
      Work never = world.receive_async({&value, 1, ElementType::kInt32}, 1, {.timeout = 200ms});
      run_loop(world, never);
    } else {
      while (is_readable(world, kLimitMs)) world.progress();
    }
  });
  for (const auto& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kDeadline);
  }
}

TEST_CASE("a failure elsewhere makes the descriptor of an idle rank readable") {
  const std::string transport = GENERATE("shm", "tcp");
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    Communicator world(rank, 2, store, options);
    world.barrier();
    if (rank == 0) return world.abort("the disk is full");
    while (is_readable(world, kLimitMs)) world.progress();
  });
  CHECK(outcomes[0].text.empty());
  CHECK_THAT(outcomes[1].text, ContainsSubstring("the disk is full"));
}

TEST_CASE("descriptor() is refused beside a progress thread") {
  CommunicatorOptions options;
  options.progress_thread = true;
  run_ranks(
      1, "inproc",
      [](Communicator& world) {
        const RankOutcome outcome = outcome_of([&] { world.descriptor(); });
        expect(outcome.is_bug, outcome.text);
      },
      options);
}

}  // namespace kolo::test
