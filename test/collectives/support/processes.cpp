#include "test/collectives/support/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>

#include "transports/rendezvous.h"

extern char** environ;

namespace kolo::test {
namespace {

struct Child {
  pid_t process = -1;
  int output = -1;  // the reading end of its standard output
};

std::vector<std::string> environment_of(int rank, int size, int port) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!text.starts_with("KOLO_STORE=") && !text.starts_with("KOLO_HOST_ID=")) {
      variables.push_back(text);
    }
  }
  variables.push_back("RANK=" + std::to_string(rank));
  variables.push_back("WORLD_SIZE=" + std::to_string(size));
  variables.push_back("LOCAL_RANK=" + std::to_string(rank));
  variables.push_back("LOCAL_WORLD_SIZE=" + std::to_string(size));
  variables.push_back("KOLO_STORE=tcp://127.0.0.1:" + std::to_string(port));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Child start(std::vector<std::string> command, std::vector<std::string> environment) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  Child child;
  const int error = ::posix_spawn(&child.process, command.front().c_str(), &actions, nullptr,
                                  pointers(command).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) throw std::runtime_error("cannot start " + command.front());
  child.output = ends[0];
  return child;
}

// Reads until the end. False if the deadline passes before.
bool read_all(int descriptor, Deadline deadline, std::string& text) {
  std::array<char, 4096> part{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd watched{descriptor, POLLIN, 0};
    const int ready =
        ::poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = ::read(descriptor, part.data(), part.size());
    if (n <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

int exit_code_of(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::vector<ProcessOutcome> run_processes(int size, const std::vector<std::string>& command,
                                          const std::vector<std::string>& host_ids,
                                          std::chrono::seconds limit) {
  const TcpStoreServer server("127.0.0.1", 0);
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) {
    auto environment = environment_of(rank, size, server.port());
    if (!host_ids.empty()) {
      environment.push_back("KOLO_HOST_ID=" + host_ids.at(static_cast<std::size_t>(rank)));
    }
    children.push_back(start(command, environment));
  }
  const Deadline deadline = Clock::now() + limit;
  bool is_killed = false;
  std::vector<ProcessOutcome> outcomes;
  for (std::size_t i = 0; i < children.size(); ++i) {
    ProcessOutcome outcome;
    if (!read_all(children[i].output, deadline, outcome.output)) {
      for (std::size_t j = i; j < children.size(); ++j) ::kill(children[j].process, SIGKILL);
      is_killed = true;
    }
    if (is_killed) outcome.output += "killed after " + std::to_string(limit.count()) + " s\n";
    ::close(children[i].output);
    outcome.exit_code = exit_code_of(children[i].process);
    outcomes.push_back(outcome);
  }
  return outcomes;
}

}  // namespace kolo::test
