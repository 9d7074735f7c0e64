// Launch of ranks: a rank that is stopped before exec, processes by their environment, and binding
// to cores.
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "transports/error.h"
#include "transports/launch/environment_search.h"
#include "transports/launch/launch.h"
#include "transports/posix/host/cores.h"

namespace kolo::test {
namespace {

// Forks of this process until the one that stops: the first is the reaper, then come the ranks.
int forks_until_stop = -1;

void stop_the_second() {
  if (forks_until_stop == 0) raise(SIGSTOP);
}

}  // namespace

TEST_CASE("a rank that is stopped before it starts its program is killed and reported") {
  forks_until_stop = 2;
  pthread_atfork([] { --forks_until_stop; }, nullptr, stop_the_second);
  LaunchRequest request;
  request.command = {"true"};
  try {
    launch_ranks(request);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kSystem);
    CHECK_THAT(error.what(), ContainsSubstring("was stopped before it could start its program"));
  }
}

TEST_CASE("jobs run at the same time, and one that fails does not end the others") {
  // The second job can only end if it reads what the first one writes.
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  std::vector<LaunchRequest> requests(3);
  requests[0].command = {"sh", "-c", "read x <&" + std::to_string(ends[0]) + " && exit 0"};
  requests[0].descriptors = {ends[0]};
  requests[1].command = {"sh", "-c", "exit 3"};
  requests[2].command = {"no such program"};
  std::vector<std::size_t> order;
  const auto results = launch_jobs(requests, [&](std::size_t job, const LaunchResult&) {
    order.push_back(job);
    if (job == 1) REQUIRE(write(ends[1], "x\n", 2) == 2);
  });
  for (const int end : ends) close(end);
  REQUIRE(results.size() == 3);
  CHECK(results[0].exit_code == 0);
  CHECK(results[1].exit_code == 3);
  CHECK(results[2].exit_code == 127);
  CHECK(order == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("ranks inherit the named descriptors only") {
  std::array<int, 2> named{}, other{};
  REQUIRE(pipe2(named.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(other.data(), O_CLOEXEC) == 0);
  LaunchRequest request;
  request.ranks = 2;
  request.command = {"sh", "-c",
                     "[ -e /proc/self/fd/" + std::to_string(named[0]) +
                         " ] && [ ! -e /proc/self/fd/" + std::to_string(other[0]) + " ]"};
  request.descriptors = {named[0]};
  CHECK(launch_ranks(request).exit_code == 0);
  for (const int end : {named[0], named[1], other[0], other[1]}) close(end);
}

TEST_CASE("a process is found by whole variables, wherever they are in its environment") {
  std::string long_one = "KOLO_TEST_LONG=";
  long_one.append(10'000, 'x');
  std::string first = "KOLO_TEST_FIRST=1", last = "KOLO_TEST_LAST=2";
  std::array<char*, 4> environment{first.data(), long_one.data(), last.data(), nullptr};
  std::string program = "sleep", duration = "1000";
  std::array<char*, 3> words{program.data(), duration.data(), nullptr};
  std::array<int, 2> ends{};  // closes by exec
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    execvpe(words[0], words.data(), environment.data());
    _exit(127);
  }
  close(ends[1]);
  char none = 0;
  CHECK(read(ends[0], &none, 1) == 0);
  close(ends[0]);

  const auto is_found = [child](const std::vector<std::string>& entries) {
    return launch::EnvironmentSearch(entries).has_all(child);
  };
  CHECK(is_found({first, last}));
  CHECK(is_found({long_one}));
  for (const char* other : {"KOLO_TEST_FIRST=", "KOLO_TEST_FIRST=12", "TEST_FIRST=1", "x"})
    CHECK(!is_found({last, other}));
  CHECK(!is_found({}));

  launch::EnvironmentSearch({first, last}).kill_all();
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

using launch::bind_ranks;
using launch::Binding;
using Cores = std::vector<std::vector<int>>;

TEST_CASE("ranks are bound to shares of the cores or to whole nodes, neighbours on the same node") {
  const Cores two_nodes{{0, 1, 2, 3}, {8, 9, 10, 11}};
  CHECK(bind_ranks(two_nodes, 2, Binding::kNone).empty());
  CHECK(bind_ranks(two_nodes, 1, Binding::kCores) == Cores{{0, 1, 2, 3, 8, 9, 10, 11}});
  CHECK(bind_ranks(two_nodes, 2, Binding::kCores) == two_nodes);
  CHECK(bind_ranks(two_nodes, 3, Binding::kCores) == Cores{{0, 1}, {2, 3, 8}, {9, 10, 11}});
  CHECK(bind_ranks(two_nodes, 4, Binding::kCores) == Cores{{0, 1}, {2, 3}, {8, 9}, {10, 11}});
  CHECK(bind_ranks(two_nodes, 4, Binding::kNodes) ==
        Cores{two_nodes[0], two_nodes[0], two_nodes[1], two_nodes[1]});
  // A share on two nodes gets both.
  CHECK(bind_ranks(two_nodes, 1, Binding::kNodes) == Cores{{0, 1, 2, 3, 8, 9, 10, 11}});
  // More ranks than cores: ranks share cores.
  CHECK(bind_ranks({{0}, {1}}, 4, Binding::kCores) == Cores{{0}, {0}, {1}, {1}});
  CHECK(bind_ranks({{5}, {1, 2}}, 3, Binding::kCores) == Cores{{5}, {1}, {2}});
}

TEST_CASE("core lists are parsed in the kernel's format") {
  using Numbers = std::vector<int>;
  CHECK(launch::parse_core_list("0-2,8") == Numbers{0, 1, 2, 8});
  CHECK(launch::parse_core_list("7") == Numbers{7});
  for (const char* none : {"", "x", "3-1", "0-", "-1", "1,,2", "0-99999999"})
    CHECK(launch::parse_core_list(none).empty());
}

TEST_CASE("every core that this process may use belongs to a node") {
  std::vector<int> found;
  for (const auto& cores : launch::cores_by_node())
    found.insert(found.end(), cores.begin(), cores.end());
  std::ranges::sort(found);
  CHECK(found == posix::affinity_cores());
}

}  // namespace kolo::test
