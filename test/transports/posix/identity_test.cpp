// Identity of the host and of the clock, in a process with another time namespace.
#include "transports/posix/host/identity.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <string>

#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr int kNewTime = 0x80;  // CLONE_NEWTIME, since Linux 5.6

// The output of a process in a time namespace of its own; empty if none can be made.
std::string said_in_another_time() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(kNewTime) != 0 && ::unshare(kNewTime | CLONE_NEWUSER) != 0) ::_exit(0);
    const pid_t born = ::fork();
    if (born == 0) {
      const std::string said = posix::host_identity() + '\n' + posix::clock_identity();
      ::_exit(::write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
    }
    ::waitpid(born, nullptr, 0);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::array<char, 1024> text{};
  const auto length = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return {text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

}  // namespace

TEST_CASE("a process in another time namespace is on the same host, and has another clock") {
  const std::string said = said_in_another_time();
  if (said.empty()) {
    WARN("skipped: no time namespace can be made here");
    return;
  }
  CHECK(said.substr(0, said.find('\n')) == posix::host_identity());
  CHECK(said.substr(said.find('\n') + 1) != posix::clock_identity());
}

}  // namespace kolo::test
