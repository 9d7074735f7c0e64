#include "bench/output/plot_script.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "transports/launch/launch.h"

namespace kolo::bench {
namespace {

constexpr const char* kNoPython = "cannot start python3, which draws the plots: ";

// python3, the script, and `arguments`.
std::vector<std::string> plot_command(const std::vector<std::string>& arguments) {
  const auto script = std::filesystem::path(own_program()).parent_path() / "../share/kolo/plot.py";
  std::vector<std::string> words = {"python3", "-B", script.lexically_normal().string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

// Null-terminated, as exec expects; the words must outlive it.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string become_plot(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = plot_command(arguments);
  const std::vector<char*> pointers = pointers_to(words);
  execvp(pointers[0], pointers.data());
  return kNoPython + std::string(std::strerror(errno));
}

bool run_plot(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = plot_command(arguments);
  const std::vector<char*> pointers = pointers_to(words);
  pid_t child = 0;
  const int error = posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ);
  if (error != 0) {
    std::cerr << "kolo-bench: " << kNoPython << std::strerror(error) << '\n';
    return false;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace kolo::bench
