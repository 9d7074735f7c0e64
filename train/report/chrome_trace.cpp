#include "train/report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace kolo::train {
namespace {

using Json = nlohmann::json;

constexpr double kNanoseconds = 1e3;  // in a microsecond

// Readers of traces take a thread's number for that of the whole machine, and a thread with its
// process's number for the main thread.
constexpr int kNumbersOfRank = 10'000;
int process_of(int rank) { return (rank + 1) * kNumbersOfRank; }
int thread_of(int rank, int bucket) { return process_of(rank) + bucket + 1; }

Json name_event(const char* what, int process, int thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json order_event(const char* what, int process, int thread, int place) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", process},
          {"tid", thread},
          {"args", {{"sort_index", place}}}};
}

}  // namespace

std::string chrome_trace(const RunRecord& run) {
  Json events = Json::array();
  std::set<std::pair<int, int>> tracks;  // rank and bucket
  for (const TimelineEvent& event : run.timeline) tracks.insert({event.rank, event.bucket});
  for (const RankRecord& rank : run.ranks) {
    const int process = process_of(rank.rank);
    events.push_back(
        name_event("process_name", process, process,
                   fmt::format("rank {} ({})", rank.rank, rank.is_worker ? "worker" : "server")));
    events.push_back(order_event("process_sort_index", process, process, rank.rank));
  }
  for (const auto& [rank, bucket] : tracks) {
    const int process = process_of(rank), thread = thread_of(rank, bucket);
    const std::string name = bucket < 0 ? "training" : fmt::format("bucket {}", bucket);
    events.push_back(name_event("thread_name", process, thread, name));
    events.push_back(order_event("thread_sort_index", process, thread, bucket));
  }
  for (const TimelineEvent& event : run.timeline) {
    // Whole nanoseconds, so that a span that ends where the next one begins does not overlap it.
    const double begin = std::round(event.begin * 1e9);
    const double end = std::round((event.begin + event.seconds) * 1e9);
    events.push_back({{"ph", "X"},
                      {"name", event.name},
                      {"cat", event.bucket < 0 ? "training" : "bucket"},
                      {"pid", process_of(event.rank)},
                      {"tid", thread_of(event.rank, event.bucket)},
                      {"ts", begin / kNanoseconds},
                      {"dur", (end - begin) / kNanoseconds}});
  }
  const Json file = {{"displayTimeUnit", "ms"},
                     {"otherData", {{"arm", run.arm}, {"seed", run.seed}}},
                     {"traceEvents", std::move(events)}};
  return file.dump() + "\n";
}

std::map<std::string, std::string> timeline_files(std::span<const RunRecord> runs) {
  std::map<std::string, std::string> files;
  for (const RunRecord& run : runs) {
    if (run.timeline.empty()) continue;
    std::string arm = run.arm;
    std::ranges::replace(arm, ':', '-');
    files.try_emplace(fmt::format("timeline-{}.json", arm), chrome_trace(run));
  }
  return files;
}

}  // namespace kolo::train
