#include "test/train/experiments/program.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kolo::test {
namespace {

// A file of a process below /proc; empty where it is gone.
std::string text_of(pid_t process, const char* name) {
  const std::filesystem::path path =
      std::filesystem::path("/proc") / std::to_string(process) / name;
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// State and parent from /proc/PID/stat; the name in brackets may have spaces.
struct Stat {
  char state = 'X';
  pid_t parent = 0;
};
Stat stat_of(pid_t process) {
  const std::string text = text_of(process, "stat");
  const std::size_t end = text.rfind(')');
  Stat stat;
  if (end != std::string::npos)
    std::istringstream(text.substr(end + 1)) >> stat.state >> stat.parent;
  return stat;
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

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const std::string& folder) {
  std::vector<std::string> words{KOLO_TRAIN};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = fork();
  if (process_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    if (chdir(folder.c_str()) == 0) execv(KOLO_TRAIN, pointers.data());
    _exit(127);
  }
  close(ends[1]);
  reading_ = ends[0];
}

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
        std::string("still running after a minute; so far:\n").append(output_));
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

std::vector<pid_t> Program::descendants() const {
  std::vector<pid_t> found;
  const std::vector<pid_t> processes = all_processes();
  std::vector<pid_t> parents{process_};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const pid_t process : processes) {
      if (stat_of(process).parent != parent) continue;
      found.push_back(process);
      parents.push_back(process);
    }
  }
  return found;
}

pid_t Program::rank_process(int rank) const {
  std::string wanted("\0RANK=", 6);  // between the ends of two variables
  wanted.append(std::to_string(rank)).push_back('\0');
  for (const pid_t process : descendants()) {
    std::string variables(1, '\0');
    variables.append(text_of(process, "environ"));
    if (variables.find(wanted) != std::string::npos) return process;
  }
  throw std::runtime_error(std::string("no process is rank ").append(std::to_string(rank)));
}

bool is_gone(pid_t process) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    const char state = stat_of(process).state;
    if (state == 'X' || state == 'Z') return true;
    sched_yield();
  }
  return false;
}

Ended run_program(const std::vector<std::string>& arguments, const std::string& folder) {
  Program program(arguments, folder);
  const int code = program.wait();
  return {code, program.output()};
}

}  // namespace kolo::test
