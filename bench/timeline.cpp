#include "bench/timeline.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/whole_file.h"

namespace kolo::bench {
namespace {

nlohmann::ordered_json read_events(const std::string& file) {
  std::ifstream stream(file);
  if (!stream)
    throw std::runtime_error(fmt::format("timeline {}: there is no such file to read", file));
  nlohmann::ordered_json text;
  try {
    text = nlohmann::ordered_json::parse(stream, nullptr, false);
  } catch (const std::ios_base::failure&) {  // a folder opens, and cannot be read
    throw std::runtime_error(fmt::format("timeline {}: it cannot be read", file));
  }
  if (!text.is_object() || !text.contains("traceEvents") || !text["traceEvents"].is_array()) {
    throw std::runtime_error(
        fmt::format("timeline {}: this is no timeline, as KOLO_TIMELINE leaves one", file));
  }
  return std::move(text["traceEvents"]);
}

}  // namespace

int run_timeline(const TimelineRequest& request) {
  nlohmann::ordered_json all;
  all["displayTimeUnit"] = "ns";
  all["traceEvents"] = nlohmann::ordered_json::array();
  for (const std::string& file : request.files) {
    for (auto& event : read_events(file)) all["traceEvents"].push_back(std::move(event));
  }
  write_whole(request.out, all.dump(), "--out");
  std::cout << fmt::format("{}: {} events of {} files; open it in chrome://tracing or Perfetto\n",
                           request.out, all["traceEvents"].size(), request.files.size());
  return 0;
}

}  // namespace kolo::bench
