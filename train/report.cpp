#include "train/report.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "transports/launch.h"

extern char** environ;

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> kPlotNames{"throughput", "iteration", "learning", "bytes"};
// The distribution's first: that is where its matplotlib is.
constexpr std::array<const char*, 2> kInterpreters{"/usr/bin/python3", "python3"};
constexpr int kNoMatplotlib = 3;  // the script's exit code for it
constexpr int kNotFound = 127;    // where there is no such interpreter

[[noreturn]] void fail(const std::string& folder, const std::string& reason) {
  throw ReportError(fmt::format(
      "--report: the folder '{}' cannot be written: {}; give another folder, or free it", folder,
      reason));
}

void make_folder(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) fail(folder, code.message());
  if (!fs::is_directory(folder)) fail(folder, "it is not a folder");
}

// Those that make_folder() would have to make, the innermost first.
std::vector<fs::path> missing_folders(const std::string& folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path path = fs::absolute(folder, ignored).lexically_normal();
       !path.empty() && !fs::exists(path, ignored); path = path.parent_path()) {
    missing.push_back(path);
  }
  return missing;
}

void write_whole(const std::string& folder, const std::string& name, const std::string& text) {
  const fs::path part = fs::path(folder) / ("." + name + ".part");
  std::string refusal;
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    file.flush();
    if (!file) refusal = std::strerror(errno);
  }
  std::error_code code;
  if (refusal.empty()) fs::rename(part, fs::path(folder) / name, code);
  if (code) refusal = code.message();
  if (refusal.empty()) return;
  fs::remove(part, code);
  fail(folder, fmt::format("{}: {}", name, refusal));
}

// The exit code, or -1 where the program could not be started.
int run_program(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
    return -1;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

// Plots of an earlier report must not stand beside new numbers.
void remove_plots(const std::string& folder) {
  for (const char* name : kPlotNames) {
    for (const char* kind : {".png", ".svg"}) {
      std::error_code ignored;
      fs::remove(fs::path(folder) / (std::string(name) + kind), ignored);
    }
  }
}

}  // namespace

std::int64_t Report::skipped_iterations() const {
  if (runs.empty()) return 0;
  return static_cast<std::int64_t>(runs.front().step_seconds.size()) -
         runs.front().counted_iterations;
}

void require_writable(const std::string& folder) {
  const std::vector<fs::path> missing = missing_folders(folder);
  const std::string probe = fmt::format(".probe-{}", getpid());
  std::error_code ignored;
  std::exception_ptr refusal;
  try {
    make_folder(folder);
    write_whole(folder, probe, "");
    fs::remove(fs::path(folder) / probe, ignored);
  } catch (const ReportError&) {
    refusal = std::current_exception();
  }
  for (const fs::path& path : missing) fs::remove(path, ignored);
  if (refusal) std::rethrow_exception(refusal);
}

void write_report(const std::string& folder, const Report& report) {
  make_folder(folder);
  remove_plots(folder);
  write_whole(folder, "report.json", report_json(report));
  write_whole(folder, "report.md", report_markdown(report));
}

std::string draw_plots(const std::string& folder) {
  // Beside the program, built or installed.
  const fs::path beside = fs::path(own_program()).parent_path() / "../share/kolo/plot_report.py";
  const std::string script = beside.lexically_normal().string();
  if (!fs::exists(script)) return fmt::format("no plots: {} is not there", script);
  bool is_without_matplotlib = false, has_failed = false;
  for (const char* interpreter : kInterpreters) {
    const int code = run_program({interpreter, script, folder});
    if (code == 0) return "";
    has_failed = code > 0 && code != kNoMatplotlib && code != kNotFound;
    if (has_failed) break;  // it has said why
    is_without_matplotlib = is_without_matplotlib || code == kNoMatplotlib;
  }
  if (is_without_matplotlib && !has_failed) {
    return fmt::format(
        "no plots: python3 has no matplotlib (Debian: python3-matplotlib); when it has, "
        "run: python3 {} {}",
        script, folder);
  }
  return fmt::format("no plots: see above; to try again, run: python3 {} {}", script, folder);
}

}  // namespace kolo::train
