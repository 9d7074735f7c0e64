// A child of fork() has its parent's communicators in memory. It must neither use nor end them.
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"

namespace kolo::test {
namespace {

constexpr int kRefused = 7;

// The exit code of a child that uses its parent's communicator.
int use_and_end(std::optional<Communicator>& world) {
  int code = 1;
  try {
    world->barrier();
  } catch (const std::invalid_argument& error) {
    const bool is_named = std::string(error.what()).find("fork()") != std::string::npos;
    code = is_named ? kRefused : 2;
  } catch (...) {
    code = 3;
  }
  world.reset();
  return code;
}

// The exit code of a child that uses its parent's operation in flight.
int use_work(Work work) {
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] { work.test(); }, [&] { work.wait(); }, [&] { work.when_done([](const Error*) {}); },
           [&] {
             wait_any({&work, 1});
           }}) {
    const RankOutcome outcome = outcome_of(use);
    if (!outcome.is_bug || outcome.text.find("fork()") == std::string::npos) return 1;
  }
  return kRefused;
}

// The exit code of a process that comes as a rank that is there already.
int come_twice(std::uint16_t port) {
  try {
    const auto store =
        connect_tcp_store("127.0.0.1", port, Clock::now() + std::chrono::seconds(20));
    const Communicator communicator(1, 2, store);
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool is_named = text.find("rank 1 (") == 0 && text.find("is refused") != text.npos;
    return is_named ? kRefused : 2;
  }
  return 1;
}

int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The thread sanitizer of g++ 12 does not hold its allocator's locks during fork(), so a child of a
// process with threads may hang.
bool is_fork_unsafe() {
  if (kIsThreadSanitized) WARN("skipped: fork() with threads is unsafe in the thread sanitizer");
  return kIsThreadSanitized;
}

}  // namespace

TEST_CASE("a child of fork() neither uses nor ends its parent's communicator") {
  if (is_fork_unsafe()) return;
  const std::string transport = GENERATE("inproc", "shm", "tcp");
  INFO(transport);
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    std::optional<Communicator> world;
    world.emplace(rank, 2, store, options);
    std::array<float, 100> data{};
    for (int i = 0; i < 3; ++i) {
      world->all_reduce(std::span(data));
      if (rank == 1) {
        const int code = exit_code_of_child([&] { return use_and_end(world); });
        expect(code == kRefused, "the child ended with " + std::to_string(code));
      }
    }
    world->barrier();
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

TEST_CASE("a child of fork() does not drive an operation that its parent has in flight") {
  if (is_fork_unsafe()) return;
  const std::string transport = GENERATE("inproc", "shm", "tcp");
  INFO(transport);
  run_ranks(2, transport, [](Communicator& world) {
    std::vector<int> data(100'000, world.rank() + 1);
    Work sum;
    if (world.rank() == 0) {
      sum = world.all_reduce_async(data);
      const int code = exit_code_of_child([&] { return use_work(sum); });
      expect(code == kRefused, "the child ended with " + std::to_string(code));
    } else {
      sum = world.all_reduce_async(data);
    }
    sum.wait();
    expect(std::ranges::count(data, 3) == std::ssize(data), "another sum");
  });
}

TEST_CASE("a second process with a rank of a running job gets an error, and the job goes on") {
  if (is_fork_unsafe()) return;
  const TcpStoreServer server("127.0.0.1", 0);
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>&) {
    const auto store =
        connect_tcp_store("127.0.0.1", server.port(), Clock::now() + std::chrono::seconds(20));
    Communicator world(rank, 2, store);
    if (rank == 1) {
      const int code = exit_code_of_child([&] { return come_twice(server.port()); });
      expect(code == kRefused, "the child ended with " + std::to_string(code));
    }
    world.barrier();
    Communicator again(rank, 2, store);  // its keys are as the newcomer found them
    again.barrier();
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

}  // namespace kolo::test
