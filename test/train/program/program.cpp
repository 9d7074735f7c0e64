#include "test/train/program/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

// A file of a process in /proc; empty if the process has ended.
std::string text_of(pid_t process, const char* name) {
  const std::filesystem::path path =
      std::filesystem::path("/proc") / std::to_string(process) / name;
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Whether the process has ended or is a zombie. The name in brackets, before the state, may contain
// spaces.
bool is_over(pid_t process) {
  const std::string text = text_of(process, "stat");
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return true;
  char state = 'X';
  std::istringstream(text.substr(end + 1)) >> state;
  return state == 'X' || state == 'Z';
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos)
      processes.push_back(std::stoi(name));
  }
  return processes;
}

// `variable` is NAME=value; the kernel separates variables by null characters.
bool has_variable(pid_t process, const std::string& variable) {
  std::string variables(1, '\0');
  variables.append(text_of(process, "environ"));
  std::string wanted(1, '\0');
  wanted.append(variable).push_back('\0');
  return variables.find(wanted) != std::string::npos;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Runs in the new process. A test has one thread, so all calls are allowed here.
[[noreturn]] void become(const Start& start, int writing) {
  std::vector<std::string> words{start.file};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  setenv("PYTHONPATH", KOLO_SOURCE_DIR "/test/train/program/no_plots", 1);
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  for (const auto& [name, value] : start.variables) setenv(name.c_str(), value.c_str(), 1);
  // A shell that runs the tests in the background ignores these signals, and children inherit that.
  for (const int number : {SIGINT, SIGQUIT}) std::signal(number, SIG_DFL);
  dup2(writing, STDOUT_FILENO);
  dup2(writing, STDERR_FILENO);
  if (chdir(start.folder.c_str()) != 0 || !start.prepare()) _exit(126);
  execv(start.file.c_str(), pointers(words).data());
  _exit(127);
}

}  // namespace

std::string program_under_test() { return KOLO_TRAIN; }

Program::Program(const Start& start) {
  static int count = 0;
  const std::string mark = std::to_string(getpid()) + "." + std::to_string(++count);
  mark_ = "KOLO_TEST_PROGRAM=" + mark;
  Start marked = start;
  marked.variables["KOLO_TEST_PROGRAM"] = mark;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = fork();
  if (process_ == 0) become(marked, ends[1]);
  close(ends[1]);
  reading_ = ends[0];
}

Program::Program(const std::vector<std::string>& arguments, const std::string& folder)
    : Program(Start{.arguments = arguments, .folder = folder, .variables = {}}) {}

Program::~Program() {
  if (!is_over_) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close(reading_);
}

bool Program::read_some() {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
  pollfd waiting{reading_, POLLIN, 0};
  if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
    throw std::runtime_error(
        std::string("still running after four minutes; so far:\n").append(output_));
  }
  std::array<char, 4096> block{};
  const ssize_t count = read(reading_, block.data(), block.size());
  if (count > 0) output_.append(block.data(), static_cast<std::size_t>(count));
  return count > 0;
}

void Program::wait_for(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!read_some())
      throw std::runtime_error(
          std::string("ended without '").append(text).append("':\n").append(output_));
  }
}

int Program::wait() {
  while (read_some()) {
  }
  int status = 0;
  waitpid(process_, &status, 0);
  is_over_ = true;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Program::signal(int number) const { kill(process_, number); }

std::vector<pid_t> Program::marked() const {
  std::vector<pid_t> found;
  for (const pid_t process : all_processes()) {
    if (has_variable(process, mark_) && !is_over(process)) found.push_back(process);
  }
  return found;
}

pid_t Program::rank_process(int rank) const {
  const std::string wanted = "RANK=" + std::to_string(rank);
  for (const pid_t process : marked()) {
    if (has_variable(process, wanted)) return process;
  }
  throw std::runtime_error(std::string("no process is rank ").append(std::to_string(rank)));
}

pid_t Program::wait_for_rank(int rank) const {
  while (true) {
    try {
      return rank_process(rank);
    } catch (const std::runtime_error&) {
      if (std::chrono::steady_clock::now() > deadline_) throw;
      sched_yield();
    }
  }
}

std::vector<pid_t> Program::left_behind() const {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  std::vector<pid_t> left = marked();
  while (!left.empty() && std::chrono::steady_clock::now() < deadline) {
    sched_yield();
    left = marked();
  }
  return left;
}

ProgramResult run_program(const Start& start) {
  Program program(start);
  const int code = program.wait();
  return {code, program.output()};
}

ProgramResult run_program(const std::vector<std::string>& arguments, const std::string& folder) {
  return run_program(Start{.arguments = arguments, .folder = folder, .variables = {}});
}

}  // namespace kolo::test
