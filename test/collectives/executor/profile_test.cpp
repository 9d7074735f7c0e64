// Profile of an operation: sums per kind of step, channel and wait, and the timeline.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/executor/recorder.h"
#include "test/collectives/support/ranks.h"
#include "test/collectives/support/timelines.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

namespace fs = std::filesystem;

void sum_ranks(Communicator& communicator, std::size_t count, std::string_view algorithm = {}) {
  std::vector<float> data(count, static_cast<float>(communicator.rank() + 1));
  communicator.all_reduce({data.data(), count, ElementType::kFloat32}, ReduceOp::kSum,
                          {.algorithm = algorithm});
  const int size = communicator.size();
  expect(data == std::vector<float>(count, static_cast<float>(size * (size + 1) / 2)),
         "the sum is wrong");
}

constexpr std::size_t kCount = 100'003;

}  // namespace

TEST_CASE("without a profile no step is counted, but channels and waits always are") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(3, transport, [](Communicator& communicator) {
    sum_ranks(communicator, kCount);
    expect(communicator.step_profile().empty(), "steps were counted");
    std::uint64_t sent = 0;
    for (int peer = 0; peer < communicator.size(); ++peer) {
      const PeerStatistics counted = communicator.peer_statistics(peer);
      sent += counted.channel.bytes_sent;
      if (peer != communicator.rank()) continue;
      expect(counted.channel.segments_sent == 0 && counted.waits.waits == 0,
             "a rank exchanged something with itself");
    }
    const CommunicatorStatistics all = communicator.statistics();
    expect(sent >= all.payload_bytes_sent + all.header_bytes_sent, "channels sent less than all");
  });
}

TEST_CASE("statistics of a rank that does not exist are refused") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    for (const int peer : {-1, 2}) {
      const auto outcome = outcome_of([&] { communicator.peer_statistics(peer); });
      expect(outcome.is_bug, "rank " + std::to_string(peer) + " was accepted");
    }
  });
}

TEST_CASE("the bytes of the sending steps match the formula") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(1, 2, 3, 4);
  CommunicatorOptions options;
  options.profile = true;
  run_ranks(
      size, transport,
      [](Communicator& communicator) {
        for (const std::string_view algorithm : algorithm_names(Collective::kAllReduce)) {
          const auto payload = communicator.statistics().payload_bytes_sent;
          const auto before = sent_by(communicator.step_profile()).bytes;
          sum_ranks(communicator, kCount, algorithm);
          const auto moved = communicator.statistics().payload_bytes_sent - payload;
          expect(sent_by(communicator.step_profile()).bytes - before == moved,
                 std::string(algorithm) + ": steps and channels differ");
        }
        for (const StepProfile& one : communicator.step_profile()) {
          expect(one.steps > 0 && one.worked_us >= 0 && one.waited_us >= 0,
                 std::string(one.kind) + ": counts that cannot be");
        }
      },
      options);
}

TEST_CASE("every rank writes a timeline whose steps lie within their operations") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const Folder folder;
  CommunicatorOptions options;
  options.timeline = folder.file("t.json");
  run_ranks(
      2, transport,
      [](Communicator& communicator) {
        for (int i = 0; i < 3; ++i) sum_ranks(communicator, kCount, "ring");
      },
      options);
  CHECK(folder.names() == std::set<std::string>{"t.0.json", "t.1.json"});
  for (int rank = 0; rank < 2; ++rank) {
    const auto text = read_timeline(folder.file("t." + std::to_string(rank) + ".json"));
    CHECK(text["otherData"]["steps_left_out"] == "0");
    std::vector<std::pair<double, double>> operations;
    std::uint64_t bytes = 0;
    for (const auto& event : text["traceEvents"]) {
      REQUIRE(event["pid"] == rank);
      if (event["ph"] == "M") continue;
      REQUIRE(event["ph"] == "X");
      const double begin = event["ts"];
      const double end = begin + event["dur"].get<double>();
      if (event["name"] == "all_reduce") {
        operations.emplace_back(begin, end);
        CHECK(event["args"]["algorithm"] == "ring");
      }
    }
    REQUIRE(operations.size() == 3);
    for (const auto& event : text["traceEvents"]) {
      if (event["ph"] == "M" || event["name"] == "all_reduce") continue;
      const double begin = event["ts"];
      const double end = begin + event["dur"].get<double>();
      constexpr double kRounding = 0.002;
      CHECK(std::any_of(operations.begin(), operations.end(), [&](const auto& operation) {
        return begin >= operation.first - kRounding && end <= operation.second + kRounding;
      }));
      if (event["name"].get<std::string>().starts_with("send")) {
        CHECK(event["args"]["to"] == 1 - rank);
        bytes += event["args"]["bytes"].get<std::uint64_t>();
      }
    }
    CHECK(bytes > 0);
  }
}

TEST_CASE("concurrent messages have tracks of their own") {
  const Folder folder;
  CommunicatorOptions options;
  options.timeline = folder.file("t.json");
  run_ranks(
      2, "inproc",
      [](Communicator& communicator) {
        const int other = 1 - communicator.rank();
        std::vector<float> in(kCount), out(kCount, 1);
        Work work = communicator.receive_async({in.data(), kCount, ElementType::kFloat32}, other);
        communicator.send({out.data(), kCount, ElementType::kFloat32}, other);
        work.wait();
      },
      options);
  const auto text = read_timeline(folder.file("t.0.json"));
  std::map<std::string, int> threads;
  std::map<int, int> operations;
  for (const auto& event : text["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      threads[event["args"]["name"]] = event["tid"];
    if (event["ph"] == "X" && event["args"].contains("algorithm")) ++operations[event["tid"]];
  }
  REQUIRE(threads.count("messages to rank 1, operations") == 1);
  REQUIRE(threads.count("messages from rank 1, operations") == 1);
  CHECK(operations[threads["messages to rank 1, operations"]] == 1);
  CHECK(operations[threads["messages from rank 1, operations"]] == 1);
}

TEST_CASE("a group's timeline is a separate file that names the ranks of the job") {
  const Folder folder;
  CommunicatorOptions options;
  options.timeline = folder.file("t.json");
  run_ranks(
      3, "inproc",
      [](Communicator& communicator) {
        auto group = communicator.split(communicator.rank() == 0 ? -1 : 0);
        if (group) sum_ranks(*group, 1000);
      },
      options);
  const auto names = folder.names();
  CHECK(names.size() == 5);
  int groups = 0;
  for (const std::string& name : names) {
    if (name.find("group") == std::string::npos) continue;
    ++groups;
    const bool is_of_rank_1_or_2 = name.ends_with(".1.json") || name.ends_with(".2.json");
    CHECK(is_of_rank_1_or_2);
  }
  CHECK(groups == 2);
}

TEST_CASE("a job that fails also writes its timelines") {
  const Folder folder;
  const auto outcomes = run_threads(2, [&](int rank, std::shared_ptr<Store> store) {
    CommunicatorOptions options;
    options.transport = "inproc";
    options.timeline = folder.file("t.json");
    Communicator communicator(rank, 2, std::move(store), options);
    sum_ranks(communicator, kCount);
    sum_ranks(communicator, kCount);  // it cannot end before the first has ended
    if (rank == 0) communicator.abort("that is enough");
    sum_ranks(communicator, kCount);
  });
  CHECK(outcomes[0].code.has_value());
  CHECK(outcomes[1].code.has_value());
  for (const char* name : {"t.0.json", "t.1.json"}) {
    const auto text = read_timeline(folder.file(name));
    CHECK(std::any_of(text["traceEvents"].begin(), text["traceEvents"].end(),
                      [](const auto& event) { return event["name"] == "all_reduce"; }));
  }
}

TEST_CASE("a timeline that cannot be written is refused at the start, with its name") {
  CommunicatorOptions options;
  options.transport = "inproc";
  options.timeline = "/no/such/folder/t.json";
  const auto outcome =
      outcome_of([&] { Communicator communicator(0, 1, make_local_store(), options); });
  CHECK(outcome.is_bug);
  CHECK_THAT(outcome.text, ContainsSubstring("/no/such/folder/t.0.json"));
}

TEST_CASE("a timeline can be written before the end, and is written once") {
  const Folder folder;
  CommunicatorOptions options;
  options.transport = "inproc";
  options.timeline = folder.file("t.json");
  {
    Communicator communicator(0, 1, make_local_store(), options);
    communicator.barrier();
    communicator.write_records();
    CHECK(folder.names() == std::set<std::string>{"t.0.json"});
    fs::remove(folder.file("t.0.json"));
  }
  CHECK(folder.names().empty());
}

TEST_CASE("a timeline whose folder has gone is an error with the file name and the reason") {
  CommunicatorOptions options;
  options.transport = "inproc";
  auto folder = std::make_unique<Folder>();
  options.timeline = folder->file("t.json");
  Communicator communicator(0, 1, make_local_store(), options);
  folder.reset();
  const auto outcome = outcome_of([&] { communicator.write_records(); });
  CHECK(outcome.code == ErrorCode::kSystem);
  CHECK_THAT(outcome.text, ContainsSubstring("rank 0: the timeline: cannot write ") &&
                               ContainsSubstring("t.0.json") && ContainsSubstring("No such file"));
}

TEST_CASE("steps beyond the reserved memory are counted and left out") {
  const Folder folder;
  Recorder recorder(0, folder.file("t.json"));
  const auto number = recorder.begin_operation({}, "ring", kCollectiveTrack);
  StepRecord step;
  step.bytes = 10;
  for (std::size_t i = 0; i < kTimelineSteps + 5; ++i) recorder.add(step);
  recorder.end_operation(number);
  recorder.write();
  // Plain text: parsing a quarter of a million events takes minutes under a sanitizer.
  std::ostringstream text;
  text << std::ifstream(folder.file("t.json")).rdbuf();
  CHECK(text.view().ends_with(",\"steps_left_out\":\"5\"}}\n"));
  REQUIRE(recorder.profile().size() == 1);
  CHECK(recorder.profile()[0].steps == kTimelineSteps + 5);
  CHECK(recorder.profile()[0].bytes == 10 * (kTimelineSteps + 5));
}

TEST_CASE("the time of a step is split into waiting and work") {
  Recorder recorder(0, "");
  StepRecord step;
  step.kind = static_cast<std::uint8_t>(StepKind::kReceive);
  step.begin = Clock::time_point(std::chrono::microseconds(100));
  step.worked = step.begin + std::chrono::microseconds(30);
  step.end = step.worked + std::chrono::microseconds(7);
  recorder.add(step);
  recorder.add(step);
  step.kind = StepRecord::kDrain;
  recorder.add(step);
  const auto profile = recorder.profile();
  REQUIRE(profile.size() == 2);
  CHECK(profile[0].kind == to_string(StepKind::kReceive));
  CHECK(profile[0].steps == 2);
  CHECK(profile[0].waited_us == Approx(60));
  CHECK(profile[0].worked_us == Approx(14));
  CHECK(profile[1].kind == "drain");
}

TEST_CASE("a timeline's file name has the rank, and a number after the first communicator") {
  CHECK(timeline_file("t.json", "", 3) == "t.3.json");
  CHECK(timeline_file("/a/b.c/t", "", 0) == "/a/b.c/t.0");
  CHECK(timeline_file("d/t.json", "group of 2 ranks 00ff from 1/1/", 12) ==
        "d/t.group-of-2-ranks-00ff-from-1-1.12.json");
}

}  // namespace kolo::test
