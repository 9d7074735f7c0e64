// A child of fork() has its parent's communicators in memory. It must neither use nor end them.
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

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

int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a child of fork() neither uses nor ends its parent's communicator") {
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

}  // namespace kolo::test
