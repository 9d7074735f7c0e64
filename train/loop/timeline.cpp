#include "train/loop/timeline.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/experiment/run_record_json.h"
#include "train/loop/gather.h"
#include "train/loop/metrics.h"

namespace kolo::train {
namespace {

constexpr int kRoundTrips = 10;

double seconds_of(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// Rank 0's side, for one other rank. Delayed round trips are less exact, so the shortest counts.
double measure_offset(Communicator& communicator, int rank) {
  double shortest = std::numeric_limits<double>::infinity(), offset = 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    double theirs = 0;
    const double sent = seconds_of(Clock::now());
    communicator.send(std::span<const double>(&sent, 1), rank);
    communicator.receive(std::span<double>(&theirs, 1), rank);
    const double received = seconds_of(Clock::now());
    if (received - sent >= shortest) continue;
    shortest = received - sent;
    offset = (sent + received) / 2 - theirs;
  }
  return offset;
}

}  // namespace

void Timeline::begin(std::string name) {
  is_on_ = true;
  name_ = std::move(name);
  began_ = Clock::now();
}

void Timeline::end() {
  add(name_, began_, Clock::now());
  is_on_ = false;
}

void Timeline::add(std::string_view name, Clock::time_point begin, Clock::time_point end,
                   int bucket) {
  if (!is_on_) return;
  events_.push_back({0, bucket, std::string(name), seconds_of(begin), seconds_between(begin, end)});
}

void Timeline::listen(tensor::Profile& profile, const tensor::Parameters& parameters) {
  profile.set_listener(
      [this, &parameters, names = std::vector<std::string>(), before = std::string()](
          std::size_t index, const tensor::Operation& operation, bool is_backward, double begin,
          double end) mutable {
        if (index == names.size()) names.push_back(layer_name(parameters, operation, before));
        if (!is_on_) return;
        const std::string kind(operation.kind);
        events_.push_back({0, -1, names.at(index) + (is_backward ? ", backward of " : ", ") + kind,
                           begin, end - begin});
      });
}

double clock_offset(Communicator& communicator) {
  double offset = 0;
  const std::span<const int> hosts = communicator.hosts();
  if (communicator.rank() == 0) {
    for (int rank = 1; rank < communicator.size(); ++rank) {
      if (hosts[static_cast<std::size_t>(rank)] == hosts[0]) continue;
      const double theirs = measure_offset(communicator, rank);
      communicator.send(std::span<const double>(&theirs, 1), rank);
    }
    return 0;
  }
  if (hosts[static_cast<std::size_t>(communicator.rank())] == hosts[0]) return 0;
  for (int i = 0; i < kRoundTrips; ++i) {
    double ignored = 0;
    communicator.receive(std::span<double>(&ignored, 1), 0);
    const double mine = seconds_of(Clock::now());
    communicator.send(std::span<const double>(&mine, 1), 0);
  }
  communicator.receive(std::span<double>(&offset, 1), 0);
  return offset;
}

std::vector<TimelineEvent> gather_timeline(Communicator& communicator, const Timeline& mine) {
  std::vector<TimelineEvent> events = mine.events();
  const double offset = clock_offset(communicator);
  for (TimelineEvent& event : events) {
    event.rank = communicator.rank();
    event.begin += offset;
  }
  const std::string text = nlohmann::json(events).dump();
  const auto lengths = gather(communicator, static_cast<std::int64_t>(text.size()));
  const std::vector<std::size_t> counts(lengths.begin(), lengths.end());
  std::size_t all = 0;
  for (const std::size_t count : counts) all += count;
  std::string texts(communicator.rank() == 0 ? all : 0, '\0');
  communicator.gather_v(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(texts)),
                        counts);
  events.clear();
  std::size_t begin = 0;
  if (communicator.rank() != 0) return events;
  for (const std::size_t count : counts) {
    const auto theirs =
        nlohmann::json::parse(texts.substr(begin, count)).get<std::vector<TimelineEvent>>();
    events.insert(events.end(), theirs.begin(), theirs.end());
    begin += count;
  }
  double first = std::numeric_limits<double>::infinity();
  for (const TimelineEvent& event : events) first = std::min(first, event.begin);
  for (TimelineEvent& event : events) event.begin -= first;
  return events;
}

}  // namespace kolo::train
