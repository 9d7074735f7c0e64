// A forked child that does nothing and never calls exec, such as a worker process of a data loader.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>

#include "test/support/catch.h"

namespace kolo::test {

class ForkedChild {
 public:
  // Returns once the child runs.
  ForkedChild() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      [[maybe_unused]] const auto written = ::write(ends[1], "1", 1);
      while (true) ::pause();
    }
    char byte = 0;
    CHECK(::read(ends[0], &byte, 1) == 1);
    for (const int end : ends) ::close(end);
  }
  ~ForkedChild() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

 private:
  pid_t process_ = -1;
};

}  // namespace kolo::test
