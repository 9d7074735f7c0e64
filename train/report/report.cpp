#include "train/report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "train/report/epoch_files.h"
#include "train/report/plots.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& folder, const std::string& reason) {
  throw ReportError(fmt::format(
      "--report: the folder '{}' cannot be written: {}; choose another folder, or make it writable",
      folder, reason));
}

// Returns why the folder cannot be made, or nothing.
std::string try_to_make(const std::string& folder) {
  std::error_code code;
  if (fs::is_symlink(folder, code) && !fs::exists(folder, code) && !code)
    return "it is a link to a place that does not exist";
  fs::create_directories(folder, code);
  if (code) return code.message();
  return fs::is_directory(folder, code) ? "" : "it is not a folder";
}

// The folders that try_to_make() would have to create, the innermost first.
std::vector<fs::path> missing_folders(const std::string& folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (fs::path path = fs::absolute(folder, ignored).lexically_normal();
       !path.empty() && !fs::exists(fs::symlink_status(path, ignored)); path = path.parent_path()) {
    missing.push_back(path);
  }
  return missing;
}

}  // namespace

std::string try_to_write(const std::string& folder, const std::string& name,
                         const std::string& text) {
  const fs::path path = fs::path(folder) / name;
  const fs::path part =
      path.parent_path() / fmt::format(".{}.{}.part", path.filename().string(), getpid());
  std::string refusal;
  std::error_code ignored;  // the file says why it cannot be written
  if (name.find('/') != std::string::npos) fs::create_directories(path.parent_path(), ignored);
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    file.flush();
    if (!file) refusal = std::strerror(errno);
  }
  std::error_code code;
  if (refusal.empty()) fs::rename(part, path, code);
  if (code) refusal = code.message();
  if (!refusal.empty()) fs::remove(part, code);
  return refusal;
}

namespace {

// Files of an earlier report must not stay beside new numbers.
void remove_timelines(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("timeline-") && name.ends_with(".json")) fs::remove(entry.path(), ignored);
  }
}

// Whether train, compare or versus wrote the report that is there.
bool has_report_of_arms(const std::string& folder) {
  const fs::path path = fs::path(folder) / "report.json";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text.find("\"kolo-report-1\"") != std::string::npos;
}

void remove_event_files(const std::string& folder) {
  std::error_code ignored;
  for (const auto& run : fs::directory_iterator(fs::path(folder) / kEventFolder, ignored)) {
    const bool is_folder = run.symlink_status(ignored).type() == fs::file_type::directory;
    if (is_folder && fs::remove(run.path() / kEventFile, ignored))
      fs::remove(run.path(), ignored);  // if it is empty now
  }
}

void write_whole(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string refusal = try_to_write(folder, name, text);
  if (!refusal.empty()) fail(folder, fmt::format("{}: {}", name, refusal));
}

}  // namespace

std::int64_t Report::skipped_iterations() const {
  if (runs.empty()) return 0;
  return static_cast<std::int64_t>(runs.front().step_seconds.size()) -
         runs.front().counted_iterations;
}

std::string why_not_writable(const std::string& folder) {
  const std::vector<fs::path> missing = missing_folders(folder);
  const std::string probe = fmt::format(".probe-{}", getpid());
  std::error_code ignored;
  std::string why = try_to_make(folder);
  if (why.empty()) why = try_to_write(folder, probe, "");
  if (why.empty()) fs::remove(fs::path(folder) / probe, ignored);
  for (const fs::path& path : missing) fs::remove(path, ignored);
  return why;
}

void require_writable(const std::string& folder) {
  if (const std::string why = why_not_writable(folder); !why.empty()) fail(folder, why);
}

void write_report(const std::string& folder, const std::string& json, const std::string& markdown,
                  const std::map<std::string, std::string>& files) {
  if (const std::string why = try_to_make(folder); !why.empty()) fail(folder, why);
  remove_plots(folder);
  remove_timelines(folder);
  remove_event_files(folder);
  if (has_report_of_arms(folder)) {
    for (const char* const name : {"manifest.json", "metrics.csv", "metrics.jsonl"}) {
      std::error_code ignored;
      if (!files.contains(name)) fs::remove(fs::path(folder) / name, ignored);
    }
  }
  write_whole(folder, "report.json", json);
  write_markdown(folder, markdown);
  for (const auto& [name, text] : files) write_whole(folder, name, text);
}

void write_markdown(const std::string& folder, const std::string& markdown) {
  write_whole(folder, "report.md", markdown);
}

}  // namespace kolo::train
