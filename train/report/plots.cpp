#include "train/report/plots.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "transports/launch/launch.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::array<const char*, 9> kNames{"throughput", "iteration",  "learning",
                                            "bytes",      "crossover",  "sweep",
                                            "scale",      "scale_data", "ladder"};
constexpr const char* kScript = "plot_report.py";
// The distribution's interpreter first, because it has the distribution's matplotlib.
constexpr std::array<const char*, 2> kInterpreters{"/usr/bin/python3", "python3"};
constexpr int kNoMatplotlib = 3;  // the script's exit code for it
constexpr int kNotFound = 127;    // if there is no such interpreter
constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kLookEvery{5};

struct Ending {
  bool is_late = false;
  int status = 0;  // of waitpid

  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
  std::string why() const {
    if (is_late) return fmt::format("the script did not end within {} s", kPatience.count());
    if (!WIFSIGNALED(status)) return "the script failed; its error is on standard error";
    const int signal = WTERMSIG(status);
    return fmt::format("the script was killed by signal {} ({})", signal, strsignal(signal));
  }
};

// Runs in the child after fork, so it must not allocate. On SIGTERM (the parent died) the script
// removes its incomplete files.
[[noreturn]] void become(char* const* words, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) execvp(words[0], words);
  _exit(kNotFound);
}

// If the child cannot be started, the exit code is that of a missing interpreter.
Ending run_script(const std::vector<std::string>& command, const std::string& folder) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t own = getpid();
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), own);
  if (child < 0) return {false, W_EXITCODE(kNotFound, 0)};
  Ending ending;
  const auto deadline = steady_clock::now() + kPatience;
  while (waitpid(child, &ending.status, WNOHANG) == 0) {
    if (!ending.is_late && steady_clock::now() > deadline) {
      ending.is_late = true;
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  for (const std::string& file : plot_files()) {
    std::error_code ignored;
    fs::remove(fs::path(folder) / fmt::format(".{}.{}.part", file, child), ignored);
  }
  return ending;
}

}  // namespace

std::string script_path(const std::string& name) {
  const fs::path beside = fs::path(own_program()).parent_path() / "../share/kolo" / name;
  return beside.lexically_normal().string();
}

std::vector<std::string> plot_files() {
  std::vector<std::string> files;
  for (const char* name : kNames) {
    for (const char* kind : {"png", "svg"}) files.push_back(fmt::format("{}.{}", name, kind));
  }
  return files;
}

std::string plot_command(const std::string& folder) {
  return fmt::format("python3 {} {}", script_path(kScript), folder);
}

PlotResult draw_plots(const std::string& folder) {
  const std::string script = script_path(kScript);
  if (!fs::exists(script)) return {fmt::format("no plots: {} does not exist", script), false};
  const std::string again = plot_command(folder);
  bool is_without_matplotlib = false;
  for (const char* interpreter : kInterpreters) {
    const Ending ending = run_script({interpreter, script, folder}, folder);
    const int code = ending.exit_code();
    if (code == 0) return {};
    is_without_matplotlib = is_without_matplotlib || code == kNoMatplotlib;
    if (code == kNoMatplotlib || code == kNotFound) continue;
    remove_plots(folder);
    return {fmt::format("no plots: {}; to try again, run: {}", ending.why(), again), true};
  }
  const char* const missing = is_without_matplotlib
                                  ? "python3 has no matplotlib (Debian: python3-matplotlib); after "
                                    "installing it"
                                  : "there is no python3; after installing it";
  return {fmt::format("no plots: {}, run: {}", missing, again), false};
}

void remove_plots(const std::string& folder) {
  for (const std::string& name : plot_files()) {
    std::error_code ignored;
    fs::remove(fs::path(folder) / name, ignored);
  }
}

}  // namespace kolo::train
