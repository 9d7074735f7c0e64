#include "transports/conformance/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <csignal>

#include "transports/error.h"

namespace kolo::inline v0::conformance {

Child::Child(std::vector<std::string> command, Output output) {
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix::Descriptor write_end;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (output == Output::kRead) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) posix::throw_system("making a pipe");
    output_ = posix::Descriptor(ends[0]);
    write_end = posix::Descriptor(ends[1]);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  }
  const int error =
      ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = -1;
    throw Error(ErrorCode::kSystem, kNoPeer,
                "cannot start " + command[0] + ": " + posix::error_text(error));
  }
}

Child::~Child() {
  kill();
  wait();
}

bool Child::read_output(std::string& output, Deadline deadline) {
  std::array<char, 4096> piece{};
  while (true) {
    pollfd watched{output_.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready =
        ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000)));
    if (ready > 0) {
      const auto got = ::read(output_.get(), piece.data(), piece.size());
      if (got <= 0) return true;
      output.append(piece.data(), static_cast<std::size_t>(got));
    } else if (Clock::now() >= deadline) {
      return false;
    }
  }
}

void Child::kill() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

int Child::wait() {
  if (pid_ > 0) ::waitpid(pid_, &status_, 0);
  pid_ = -1;
  return status_;
}

void end_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace kolo::inline v0::conformance
