#include "train/experiments/point_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "train/experiment/option_consistency.h"
#include "train/experiment/run_record_json.h"
#include "train/report/report.h"
#include "transports/settings.h"

namespace kolo::train {
namespace {

namespace fs = std::filesystem;

// Arms that train in the same way with different default words have the same full name.
std::string names_of(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.full_name());
  return fmt::format("{}", fmt::join(names, ","));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UsageError(
      fmt::format("{}: {}; choose another --report folder, or remove this one", path, why));
}

// Refuses the first flag that differs.
void require_same(const std::string& path, const SharedFlags& before, const SharedFlags& now) {
  SharedFlags names = before;
  names.insert(now.begin(), now.end());
  for (const auto& name : names) {
    const auto value_in = [&name](const SharedFlags& flags) {
      const auto found = flags.find(name.first);
      return found == flags.end() ? std::string("nothing") : "'" + found->second + "'";
    };
    if (value_in(before) == value_in(now)) continue;
    refuse(path, fmt::format("its points were made with other flags: {} was {} and is {}",
                             name.first, value_in(before), value_in(now)));
  }
}

// Writes all bytes. Returns the reason of a failure; empty on success.
std::string append(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::strerror(errno);
    done += static_cast<std::size_t>(count);
  }
  return fsync(file) == 0 ? "" : std::strerror(errno);
}

}  // namespace

SharedFlags shared_flags(std::string_view experiment, const Options& options,
                         std::string_view varied) {
  SharedFlags flags;
  for (const auto& [name, value] : flags_of(options)) flags[name] = value;
  flags.erase("--batch-size or --global-batch");  // it depends on the ranks, which may vary
  flags["experiment"] = experiment;
  flags["--strategies"] = names_of(options.arms);
  flags["--dataset"] = options.dataset;
  flags["--batch-size"] = std::to_string(options.batch_size);
  flags["--global-batch"] = std::to_string(options.global_batch);
  flags["--seeds"] = std::to_string(options.seeds);
  flags["--threads"] = std::to_string(options.threads);
  flags["--transport"] = options.transport;
  flags["--shape"] = read_settings().shape;
  flags["--progress-thread"] = options.progress_thread ? "yes" : "no";
  if (!options.load.empty()) flags["--load"] = options.load;
  if (options.loader_threads > 1)
    flags["--loader-threads"] = std::to_string(options.loader_threads);
  if (std::ranges::any_of(options.arms, &Arm::is_torch)) flags["--python"] = options.python;
  flags["--skip-steps"] = std::to_string(options.skip_steps);
  flags.erase(std::string(varied));
  return flags;
}

PointStore::PointStore(const std::string& folder, SharedFlags flags) : flags_(std::move(flags)) {
  if (folder.empty()) return;
  path_ = (fs::path(folder) / kPointsFile).string();
  read();
}

void PointStore::read() {
  std::error_code ignored;
  if (fs::is_directory(path_, ignored)) refuse(path_, "it is a folder");
  std::ifstream file(path_, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::size_t end = 0;
  while ((end = text.find('\n', complete_bytes_)) != std::string::npos) {
    read_line(text.substr(complete_bytes_, end - complete_bytes_));
    complete_bytes_ = end + 1;
  }
}

void PointStore::read_line(const std::string& line) {
  try {
    const nlohmann::json json = nlohmann::json::parse(line);
    require_same(path_, json.at("flags").get<SharedFlags>(), flags_);
    results_.push_back({json.at("point").get<std::string>(), json.at("value").get<std::int64_t>(),
                        json.at("runs").get<std::vector<RunRecord>>(),
                        json.at("no_memory").get<std::string>(),
                        json.at("made_by").get<std::string>()});
  } catch (const nlohmann::json::exception&) {
    refuse(path_, fmt::format("line {} is not the result of a point", results_.size() + 1));
  }
}

std::optional<PointResult> PointStore::find(const std::string& name) const {
  const auto found = std::ranges::find(results_, name, &PointResult::name);
  return found == results_.end() ? std::nullopt : std::optional(*found);
}

void PointStore::add(const PointResult& result) {
  results_.push_back(result);
  if (path_.empty()) return;
  std::error_code ignored;
  fs::create_directories(fs::path(path_).parent_path(), ignored);
  const std::string line =
      nlohmann::json{
          {"point", result.name},      {"value", result.value},         {"flags", flags_},
          {"made_by", result.made_by}, {"no_memory", result.no_memory}, {"runs", result.runs}}
          .dump() +
      "\n";
  std::string why;
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0 || ftruncate(file, static_cast<off_t>(complete_bytes_)) != 0) {
    why = std::strerror(errno);
  } else if (why = append(file, line);
             !why.empty() && ftruncate(file, static_cast<off_t>(complete_bytes_)) != 0) {
    why += "; an incomplete line stays";
  }
  if (file >= 0) close(file);
  if (!why.empty())
    throw ReportError(
        fmt::format("{}: the point {} cannot be stored: {}", path_, result.name, why));
  complete_bytes_ += line.size();
}

}  // namespace kolo::train
