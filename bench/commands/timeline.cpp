#include "bench/commands/timeline.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/output/atomic_file.h"
#include "bench/output/report.h"

namespace kolo::bench {
namespace {

nlohmann::ordered_json read_events(const std::string& file) {
  std::ifstream stream(file);
  if (!stream)
    throw std::invalid_argument(fmt::format("timeline {}: there is no such file to read", file));
  nlohmann::ordered_json text;
  try {
    text = nlohmann::ordered_json::parse(stream, nullptr, false);
  } catch (const std::ios_base::failure&) {  // a folder can be opened but not read
    throw std::invalid_argument(fmt::format("timeline {}: it cannot be read", file));
  }
  if (!text.is_object() || !text.contains("traceEvents") || !text["traceEvents"].is_array()) {
    throw std::invalid_argument(fmt::format(
        "timeline {}: not a timeline; expected a file that KOLO_TIMELINE wrote (files of --trace, "
        "one per rank, need no merging)",
        file));
  }
  return std::move(text["traceEvents"]);
}

// Refuses a file that is given twice, under any name: its events would be doubled.
void require_apart(const std::vector<std::string>& files) {
  std::map<std::filesystem::path, std::string> known;
  for (const std::string& file : files) {
    std::error_code code;
    const auto [first, is_new] = known.emplace(std::filesystem::weakly_canonical(file, code), file);
    if (!is_new) {
      throw std::invalid_argument(
          fmt::format("timeline {}: it is given twice{}", file,
                      first->second == file ? "" : fmt::format(", as {} too", first->second)));
    }
  }
}

}  // namespace

int run_timeline(const TimelineRequest& request) {
  require_apart(request.files);
  for (const std::string& file : request.files) {
    std::error_code code;
    if (std::filesystem::equivalent(file, request.out, code)) {
      throw std::invalid_argument(fmt::format(
          "timeline --out {}: it is one of the files to be read; name another", request.out));
    }
  }
  nlohmann::ordered_json all;
  all["displayTimeUnit"] = "ns";
  all["traceEvents"] = nlohmann::ordered_json::array();
  for (const std::string& file : request.files) {
    for (auto& event : read_events(file)) all["traceEvents"].push_back(std::move(event));
  }
  write_whole(request.out, all.dump(), "--out");
  std::cout << fmt::format("{}: {} events of {} files; open it in chrome://tracing or Perfetto\n",
                           request.out, all["traceEvents"].size(), request.files.size());
  flush_or_throw(std::cout, "standard output");
  return 0;
}

}  // namespace kolo::bench
