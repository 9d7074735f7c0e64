// The reaper ends a killed launcher's job without allocating memory. This program replaces the
// allocator, so that the children of a launcher cannot use it.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>

#include "test/support/catch.h"
#include "transports/launch/launch.h"

namespace {

bool is_child_of_launcher = false;

}  // namespace

void* operator new(std::size_t bytes) {
  if (is_child_of_launcher) _exit(126);
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*says null*/) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace kolo::test {
namespace {

constexpr int kPatienceMs = 30'000;

// Launches one rank. It starts a process in a new session, which writes a byte once it runs.
[[noreturn]] void launch_one_with_stray(int pipe) {
  pthread_atfork(nullptr, nullptr, [] { is_child_of_launcher = true; });
  LaunchRequest request;
  request.descriptors = {pipe};
  request.command = {"sh", "-c",
                     "setsid sh -c 'echo >&" + std::to_string(pipe) + "; exec sleep 1000' & wait"};
  _exit(launch_ranks(request).exit_code);
}

// The next byte, 0 if no process has the other end open any more, or -1 if neither comes in time.
int next_byte(int pipe) {
  pollfd waiting{pipe, POLLIN, 0};
  if (poll(&waiting, 1, kPatienceMs) <= 0) return -1;
  char byte = 0;
  return read(pipe, &byte, 1) == 1 ? byte : 0;
}

}  // namespace

TEST_CASE("a killed launcher's job ends although its reaper cannot allocate memory") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const pid_t launcher = fork();
  if (launcher == 0) launch_one_with_stray(ends[1]);
  close(ends[1]);
  CHECK(next_byte(ends[0]) == '\n');
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  CHECK(next_byte(ends[0]) == 0);
  close(ends[0]);
}

}  // namespace kolo::test
