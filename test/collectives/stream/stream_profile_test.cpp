// Profile of calls on streams: counters of every channel, the host's time to enqueue each kind of
// step, and a timeline track that is marked as host time.
#include <algorithm>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/collectives/support/timelines.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 10'007;

std::byte* memory_of(const StreamRank& rank, std::size_t count = kCount) {
  return rank.upload(std::vector<std::byte>(count * sizeof(float)));
}

Work sum_async(const StreamRank& rank, std::byte* memory, std::string_view algorithm,
               std::size_t count = kCount) {
  CallOptions options;
  options.algorithm = algorithm;
  options.stream = DeviceStream{rank.stream};
  return rank.communicator.all_reduce_async({memory, count, ElementType::kFloat32}, ReduceOp::kSum,
                                            options);
}

// The bytes and segments that a rank's calls on streams have sent to all its peers.
Sent given_by(const StreamRank& rank) {
  Sent sent;
  for (int peer = 0; peer < rank.communicator.size(); ++peer) {
    const ChannelStatistics given = rank.communicator.peer_statistics(peer).on_streams;
    sent.bytes += given.bytes_sent;
    sent.segments += given.segments_sent;
  }
  return sent;
}

const StepProfile* find(const std::vector<StepProfile>& profile, std::string_view kind) {
  const auto found = std::ranges::find(profile, kind, &StepProfile::kind);
  return found == profile.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("enqueued steps match the channels' counters, under names of their own") {
  for (const char* const transport : {"auto", "shm"}) {
    StreamJob job;
    job.size = 3;
    job.options.transport = transport;
    job.options.profile = true;
    run_stream_ranks(job, [](const StreamRank& rank) {
      const auto names = algorithm_names(Collective::kAllReduce);
      std::byte* const memory = memory_of(rank);
      for (const std::string_view algorithm : names) sum_async(rank, memory, algorithm).wait();
      const auto profile = rank.communicator.step_profile();
      const Sent steps = sent_by(profile, "enqueue ");
      const Sent channels = given_by(rank);
      expect(steps.bytes > 0 && steps.bytes == channels.bytes, "steps and channels differ");
      expect(steps.segments == channels.segments, "segments of steps and channels differ");
      for (const StepProfile& one : profile) {
        expect(one.kind.starts_with("enqueue "), std::string(one.kind) + ": a step of no stream");
        expect(one.steps > 0 && one.worked_us > 0 && one.waited_us >= 0,
               std::string(one.kind) + ": counts that cannot be");
      }
      const StepProfile* const openings = find(profile, "enqueue opening");
      expect(openings != nullptr && openings->steps >= 2 * names.size(), "openings are missing");
      expect(openings->bytes == openings->steps * 56, "openings of another length");
      const StepProfile* const drains = find(profile, "enqueue drain");
      expect(drains != nullptr && drains->steps == names.size(), "not one end for an operation");
    });
  }
}

TEST_CASE("both ends of a channel count the same, without a profile") {
  run_stream_ranks({}, [](const StreamRank& rank) {
    sum_async(rank, memory_of(rank), "ring").wait();
    expect(rank.communicator.step_profile().empty(), "steps were counted");
    const int other = 1 - rank.communicator.rank();
    const ChannelStatistics given = rank.communicator.peer_statistics(other).on_streams;
    expect(given.bytes_sent == kCount * sizeof(float), "bytes sent");
    expect(given.bytes_received == kCount * sizeof(float), "bytes received");
    expect(given.segments_sent == 2 && given.segments_received == 2, "segments");
    const PeerStatistics own = rank.communicator.peer_statistics(rank.communicator.rank());
    expect(own.on_streams.segments_sent == 0, "a rank gave something to itself");
  });
}

TEST_CASE("calls on the host count nothing for streams, with or without a device") {
  StreamJob job;
  job.hosts = {1};
  job.options.profile = true;
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::vector<float> data(kCount, 1);
    rank.communicator.all_reduce(std::span(data));
    expect(given_by(rank).segments == 0, "the host's segments were counted for streams");
    const auto profile = rank.communicator.step_profile();
    expect(!profile.empty(), "nothing was counted");
    for (const StepProfile& one : profile)
      expect(!one.kind.starts_with("enqueue "), std::string(one.kind) + ": of no stream");
  });
}

TEST_CASE("enqueued work is counted before the device has run any of it") {
  StreamJob job;
  job.runs = FakeMachine::Runs::kWhenTold;
  job.options.profile = true;
  run_stream_ranks(job, [](const StreamRank& rank) {
    Work work = sum_async(rank, memory_of(rank), "ring");
    rank.communicator.barrier();  // queued behind it, so both ranks have enqueued everything
    expect(given_by(rank).bytes == kCount * sizeof(float), "bytes that are given and not moved");
    const auto profile = rank.communicator.step_profile();
    expect(sent_by(profile, "enqueue ").segments == 2, "steps that are given and not moved");
    expect(!work.test(), "the device has run");
    rank.communicator.barrier();
    rank.machine.run_at_once();
    work.wait();
  });
}

TEST_CASE("the wait for a peer's host is separate from the time to enqueue") {
  constexpr std::size_t kLong = 1'000'000;  // zero copy, so the receiver must know the address
  StreamJob job;
  job.options.profile = true;
  std::promise<void> waits;
  run_stream_ranks(job, [&](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank, kLong);
    if (rank.communicator.rank() == 1) waits.get_future().wait();
    Work work = sum_async(rank, memory, "ring", kLong);
    if (rank.communicator.rank() == 0) {
      expect(!work.test() && !work.test(), "a sum without the other rank");
      waits.set_value();
    }
    work.wait();
    if (rank.communicator.rank() == 1) return;
    double waited_us = 0;
    for (const StepProfile& one : rank.communicator.step_profile()) {
      if (one.kind.starts_with("enqueue receive")) waited_us += one.waited_us;
      if (one.kind == "enqueue send") expect(one.waited_us == 0, "a send waits for no peer");
    }
    expect(waited_us > 0, "nothing was waited for");
  });
}

TEST_CASE("a timeline shows calls on streams on a track marked as host time") {
  const Folder folder;
  StreamJob job;
  job.options.timeline = folder.file("t.json");
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    for (int i = 0; i < 3; ++i) sum_async(rank, memory, "ring").wait();
    std::vector<float> data(kCount, 1);
    rank.communicator.all_reduce(std::span(data));
  });
  const auto text = read_timeline(folder.file("t.0.json"));
  const std::string whose = "calls on streams (the host's time to enqueue, not the device's), ";
  std::map<std::string, int> threads;
  for (const auto& event : text["traceEvents"]) {
    if (event["name"] == "thread_name") threads[event["args"]["name"]] = event["tid"];
  }
  REQUIRE(threads.contains(whose + "operations"));
  REQUIRE(threads.contains(whose + "steps"));
  std::vector<std::pair<double, double>> operations;
  int on_host = 0;
  for (const auto& event : text["traceEvents"]) {
    const bool is_named_so = event["name"].get<std::string>().starts_with("enqueue ");
    const bool is_there = event["tid"] == threads[whose + "operations"];
    const double begin = event.value("ts", 0.0);
    if (event["name"] == "all_reduce") ++on_host;
    if (event["ph"] == "M" || !is_there) continue;
    CHECK(is_named_so);
    CHECK(event["args"]["algorithm"] == "ring");
    operations.emplace_back(begin, begin + event["dur"].get<double>());
  }
  CHECK(on_host == 1);
  REQUIRE(operations.size() == 3);
  int steps = 0;
  int given = 0;
  int heard = 0;
  for (const auto& event : text["traceEvents"]) {
    if (event["ph"] == "M" || event["tid"] != threads[whose + "steps"]) continue;
    ++steps;
    const std::string name = event["name"];
    CHECK((name.starts_with("enqueue ") || name == "wait"));
    if (name == "enqueue opening") ++(event["args"].contains("to") ? given : heard);
    if (name == "enqueue opening" && event["args"].contains("from")) continue;  // outside the calls
    const double begin = event["ts"];
    const double end = begin + event["dur"].get<double>();
    constexpr double kRounding = 0.002;
    CHECK(std::ranges::any_of(operations, [&](const auto& operation) {
      return begin >= operation.first - kRounding && end <= operation.second + kRounding;
    }));
  }
  CHECK(steps >= 3 * 4);
  CHECK(given == 3);
  CHECK(heard == 3);
}

}  // namespace kolo::test
