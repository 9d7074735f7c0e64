#include "bench/commands/timeline.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "bench/commands/late_rank.h"
#include "bench/output/atomic_file.h"
#include "bench/output/report.h"

namespace kolo::bench {
namespace {

// One file, as the recorder of a rank writes it (collectives/executor/recorder.h).
struct Timeline {
  nlohmann::ordered_json events;
  std::string communicator;
  std::string clock;  // equal in files with the same clock
  double wall_us = 0;
};

constexpr int kOperationThread = 1;  // of collectives

Timeline read_timeline(const std::string& file) {
  std::ifstream stream(file);
  if (!stream)
    throw std::invalid_argument(fmt::format("timeline {}: there is no such file to read", file));
  nlohmann::ordered_json text;
  try {
    text = nlohmann::ordered_json::parse(stream, nullptr, false);
  } catch (const std::ios_base::failure&) {  // a folder can be opened but not read
    throw std::invalid_argument(fmt::format("timeline {}: it cannot be read", file));
  }
  try {
    const auto& about = text.at("otherData");
    Timeline timeline{text.at("traceEvents"), about.at("communicator"), about.at("clock"),
                      about.at("wall_minus_clock_us")};
    if (timeline.events.is_array()) return timeline;
  } catch (const nlohmann::json::exception&) {
    // Refused below.
  }
  throw std::invalid_argument(fmt::format(
      "timeline {}: not a timeline; expected a file that KOLO_TIMELINE wrote (files of --trace, "
      "one per rank, need no merging)",
      file));
}

// Shifts the times of files with another clock than the first. Returns the number of clocks.
std::size_t align(std::vector<Timeline>& timelines) {
  std::set<std::string> clocks;
  const Timeline& first = timelines.front();
  for (Timeline& timeline : timelines) {
    clocks.insert(timeline.clock);
    if (timeline.clock == first.clock) continue;
    for (auto& event : timeline.events) {
      if (event.contains("ts"))
        event["ts"] = event["ts"].get<double>() + timeline.wall_us - first.wall_us;
    }
  }
  return clocks.size();
}

// "all_reduce #7" of "all_reduce #7 of 100 float32 sum": ranks may give lengths of their own.
std::string call_of(const std::string& operation) {
  return operation.substr(0, operation.find(' ', operation.find('#')));
}

// One line per communicator with several ranks.
std::vector<std::string> late_ranks(const std::vector<Timeline>& timelines) {
  std::map<std::string, OperationBegins> begins;
  for (const Timeline& timeline : timelines) {
    for (const auto& event : timeline.events) {
      if (event.value("tid", 0) != kOperationThread || !event.contains("ts")) continue;
      const std::string call = call_of(event.at("args").at("operation"));
      begins[timeline.communicator][call][event.at("pid")] = event.at("ts");
    }
  }
  std::vector<std::string> lines;
  for (const auto& [communicator, operations] : begins) {
    const std::string text = late_rank_text(operations);
    if (!text.empty())
      lines.push_back(begins.size() == 1 ? text : fmt::format("{}: {}", communicator, text));
  }
  return lines;
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
  std::vector<Timeline> timelines;
  for (const std::string& file : request.files) timelines.push_back(read_timeline(file));
  const std::size_t clocks = align(timelines);
  const std::vector<std::string> lines = late_ranks(timelines);
  for (Timeline& timeline : timelines) {
    for (auto& event : timeline.events) all["traceEvents"].push_back(std::move(event));
  }
  write_whole(request.out, all.dump(), "--out");
  std::cout << fmt::format("{}: {} events of {} files; open it in chrome://tracing or Perfetto\n",
                           request.out, all["traceEvents"].size(), request.files.size());
  if (clocks > 1) {
    std::cout << fmt::format(
        "the files have {} clocks, aligned by the hosts' wall clocks: times of different hosts are "
        "as exact as those\n",
        clocks);
  }
  for (const std::string& line : lines) std::cout << line << '\n';
  flush_or_throw(std::cout, "standard output");
  return 0;
}

}  // namespace kolo::bench
