#include "train/fetch/child_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>

namespace kolo::train {
namespace {

constexpr std::array kFromTerminal{SIGINT, SIGQUIT};

// Ignores signals from the terminal while it exists.
class InterruptsIgnored {
 public:
  InterruptsIgnored() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < kFromTerminal.size(); ++i)
      sigaction(kFromTerminal[i], &ignore, &before_[i]);
  }
  ~InterruptsIgnored() { restore(); }
  InterruptsIgnored(const InterruptsIgnored&) = delete;
  InterruptsIgnored& operator=(const InterruptsIgnored&) = delete;

  void restore() const {
    for (std::size_t i = 0; i < kFromTerminal.size(); ++i)
      sigaction(kFromTerminal[i], &before_[i], nullptr);
  }

 private:
  std::array<struct sigaction, kFromTerminal.size()> before_{};
};

// Runs in the child after fork, so it must not allocate.
[[noreturn]] void become(char* const* words, int output, pid_t parent,
                         const std::optional<InterruptsIgnored>& interrupts) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (interrupts) interrupts->restore();
  dup2(output, STDOUT_FILENO);
  if (getppid() == parent) execvp(words[0], words);
  _exit(kProgramNotFound);
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> some;
  for (;;) {
    const ssize_t count = read(descriptor, some.data(), some.size());
    if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

[[noreturn]] void refuse(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

ChildResult run_child(std::vector<std::string> words, Interrupt interrupt) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) refuse("pipe");
  std::optional<InterruptsIgnored> interrupts;
  if (interrupt == Interrupt::child) interrupts.emplace();
  const pid_t own = getpid();
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), pipe[1], own, interrupts);
  close(pipe[1]);
  if (child < 0) {
    close(pipe[0]);
    refuse("fork");
  }
  ChildResult result;
  result.output = read_all(pipe[0]);
  close(pipe[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace kolo::train
