#include "collectives/executor/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include "transports/error.h"
#include "transports/posix/host/identity.h"
#include "transports/posix/whole_file.h"

namespace kolo::inline v0 {
namespace {

// Viewers show a track as two threads: operations and steps.
int operation_thread(std::uint16_t track) { return 1 + 2 * track; }
int step_thread(std::uint16_t track) { return 2 + 2 * track; }

using Microseconds = std::chrono::duration<double, std::micro>;

double since_boot_us(Clock::time_point time) {
  return Microseconds(time.time_since_epoch()).count();
}

double wall_minus_clock_us() {
  const Clock::time_point now = Clock::now();
  const Microseconds wall = std::chrono::system_clock::now().time_since_epoch();
  return wall.count() - since_boot_us(now);
}

std::string_view kind_name(std::uint8_t kind) {
  if (kind == StepRecord::kOpening) return "opening";
  return kind == StepRecord::kDrain ? "drain" : to_string(static_cast<StepKind>(kind));
}

// Kinds that are not steps have the last places in Sums.
std::size_t place_of(std::uint8_t kind, std::size_t kinds) {
  if (kind == StepRecord::kOpening) return kinds;
  return kind == StepRecord::kDrain ? kinds + 1 : kind;
}
std::uint8_t kind_at(std::size_t place, std::size_t kinds) {
  if (place == kinds) return StepRecord::kOpening;
  return place > kinds ? StepRecord::kDrain : static_cast<std::uint8_t>(place);
}

// "enqueue send". Every name of a call on streams has the prefix, since table rows and slices are
// read on their own.
std::string enqueue_name(std::string_view name) { return fmt::format("enqueue {}", name); }

// The same as a view that stays valid as long as the process runs.
std::string_view enqueue_kind_name(std::uint8_t kind) {
  static const std::array<std::string, 256> names = [] {
    std::array<std::string, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = enqueue_name(kind_name(static_cast<std::uint8_t>(i)));
    return all;
  }();
  return names[kind];
}

// A complete event ("X"). `args`: members of a JSON object, without braces.
void append_event(std::string& text, std::string_view name, int rank, int thread,
                  Clock::time_point begin, Clock::time_point end, std::string_view args) {
  fmt::format_to(std::back_inserter(text),
                 ",\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},"
                 "\"dur\":{:.3f},\"args\":{{{}}}}}",
                 name, rank, thread, since_boot_us(begin), Microseconds(end - begin).count(), args);
}

void append_name(std::string& text, std::string_view what, int rank, int thread,
                 std::string_view name) {
  fmt::format_to(
      std::back_inserter(text),
      "{{\"name\":\"{}\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}", what,
      rank, thread, name);
}

void append_thread_names(std::string& text, int rank, std::uint16_t track) {
  std::string whose;
  if (track == kStreamTrack) {
    whose = "calls on streams (the host's time to enqueue, not the device's), ";
  } else if (track != kCollectiveTrack) {
    const int peer = (track - 1) / 2;
    whose = fmt::format("messages {} rank {}, ", track % 2 == 1 ? "to" : "from", peer);
  }
  text += ",\n";
  append_name(text, "thread_name", rank, operation_thread(track), whose + "operations");
  text += ",\n";
  append_name(text, "thread_name", rank, step_thread(track), whose + "steps");
}

void append_step(std::string& text, const StepRecord& step, int rank) {
  const int thread = step_thread(step.track);
  std::string args = fmt::format("\"bytes\":{},\"chunk\":{}", step.bytes, step.chunk);
  if (step.to != kNobody) args += fmt::format(",\"to\":{}", step.to);
  if (step.from != kNobody) args += fmt::format(",\"from\":{}", step.from);
  const bool is_enqueue = step.track == kStreamTrack;
  const std::string_view name = is_enqueue ? enqueue_kind_name(step.kind) : kind_name(step.kind);
  append_event(text, name, rank, thread, step.begin, step.end, args);
  if (step.worked > step.begin)
    append_event(text, "wait", rank, thread, step.begin, step.worked, args);
}

}  // namespace

Recorder::Recorder(int rank, std::string file, std::string communicator, std::string_view source)
    : rank_(rank), file_(std::move(file)), communicator_(std::move(communicator)) {
  if (file_.empty()) return;
  if (const std::string why = posix::why_unwritable(file_); !why.empty()) {
    throw std::invalid_argument(
        fmt::format("the timeline {} ({}) cannot be written: {}", file_, source, why));
  }
  steps_.reserve(kTimelineSteps);
  operations_.reserve(kTimelineOperations);
}

std::size_t Recorder::begin_operation(const CallHeader& header, std::string_view algorithm,
                                      std::uint16_t track) {
  const std::size_t number = operations_.size();
  if (!file_.empty() && number < kTimelineOperations)
    operations_.push_back({header, algorithm, track, Clock::now(), {}});
  return number;
}

void Recorder::end_operation(std::size_t number) {
  if (number < operations_.size()) operations_[number].end = Clock::now();
}

void Recorder::add(const StepRecord& step) {
  Sums& sums = step.track == kStreamTrack ? enqueued_ : sums_;
  Sum& sum = sums[place_of(step.kind, kKinds)];
  ++sum.steps;
  sum.bytes += step.bytes;
  sum.worked += step.end - step.worked;
  sum.waited += step.worked - step.begin;
  if (file_.empty()) return;
  if (steps_.size() < kTimelineSteps) {
    steps_.push_back(step);
  } else {
    ++left_out_;
  }
}

std::vector<StepProfile> Recorder::profile() const {
  std::vector<StepProfile> result;
  const auto append = [&result](const Sums& sums, std::string_view (*name_of)(std::uint8_t)) {
    for (std::size_t place = 0; place < sums.size(); ++place) {
      const Sum& sum = sums[place];
      if (sum.steps == 0) continue;
      result.push_back({name_of(kind_at(place, kKinds)), sum.steps, sum.bytes,
                        Microseconds(sum.worked).count(), Microseconds(sum.waited).count()});
    }
  };
  append(sums_, kind_name);
  append(enqueued_, enqueue_kind_name);
  return result;
}

std::string Recorder::json() const {
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  append_name(text, "process_name", rank_, 0, fmt::format("rank {}", rank_));
  std::set<std::uint16_t> tracks = {kCollectiveTrack};
  for (const OperationRecord& one : operations_) tracks.insert(one.track);
  for (const std::uint16_t track : tracks) append_thread_names(text, rank_, track);
  for (const OperationRecord& one : operations_) {
    if (one.end == Clock::time_point{}) continue;
    const std::string_view called = to_string(one.header.collective);
    const std::string name = one.track == kStreamTrack ? enqueue_name(called) : std::string(called);
    append_event(text, name, rank_, operation_thread(one.track), one.begin, one.end,
                 fmt::format("\"operation\":\"{}\",\"algorithm\":\"{}\"", describe(one.header),
                             one.algorithm));
  }
  for (const StepRecord& step : steps_) append_step(text, step, rank_);
  text += fmt::format(
      "\n],\"otherData\":{{\"communicator\":\"{}\",\"clock\":\"{}\","
      "\"wall_minus_clock_us\":{:.1f},\"steps_left_out\":\"{}\"}}}}\n",
      communicator_, posix::clock_identity(), wall_minus_clock_us(), left_out_);
  return text;
}

void Recorder::write() const {
  if (!file_.empty()) posix::write_whole(file_, json());
}

std::string timeline_file(std::string_view file, std::string_view communicator, int rank) {
  const std::filesystem::path path(file);
  std::string name;
  for (const char c : communicator)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  while (name.ends_with('-')) name.pop_back();
  const std::string middle =
      name.empty() ? fmt::format(".{}", rank) : fmt::format(".{}.{}", name, rank);
  return (path.parent_path() / path.stem()).string() + middle + path.extension().string();
}

}  // namespace kolo::inline v0
