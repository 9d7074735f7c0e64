// Whatever call of the driver's or of the kernels' fails, in whatever operation on streams: every
// rank comes to its end with a right result or an error that says so, and nothing stays behind.
//
// An operation is played once without a fault to learn which calls rank 1 makes from its beginning
// to its end, and then once for each of them.
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr int kPlanted = 999;
constexpr int kRanks = 3;
constexpr int kFailing = 1;  // one of them

// What gives back what was had, or is called for that: when it fails, what it was to give back
// stays, and nobody could do anything about it. An event that could not be recorded is never seen
// to be done: what is before it in the stream may be in use until the process ends.
bool may_leave_something(const std::string& function) {
  static const std::set<std::string> functions = {
      "free",
      "free_host",
      "unregister_host",
      "ipc_close",
      "destroy_stream",
      "destroy_event",
      "release_context",
      "push_context",
      "record_event",
      "exchange_capture_mode",
  };
  return functions.count(function) != 0;
}

struct Operation {
  const char* name;
  const char* transport = "cuda_ipc";
  std::size_t count = 1009;
  FakeDriver::Kind kind = FakeDriver::Kind::kDevice;
  std::vector<int> hosts = {};
  void (*run)(const StreamRank& rank, const Operation& operation) = nullptr;
};

std::byte* memory_of(const StreamRank& rank, const Operation& operation) {
  const std::size_t bytes = operation.count * sizeof(float);
  std::byte* const memory = rank.driver.make_memory(bytes, operation.kind, rank.device);
  rank.uploads.push_back(memory);
  const std::vector<float> values(operation.count,
                                  static_cast<float>(rank.communicator.rank() + 1));
  std::memcpy(memory, values.data(), bytes);
  return memory;
}

CallOptions on(const StreamRank& rank) {
  CallOptions options;
  options.stream = DeviceStream{rank.stream};
  return options;
}

void expect_all(const std::byte* memory, std::size_t count, float value) {
  std::vector<float> found(count);
  std::memcpy(found.data(), memory, count * sizeof(float));
  for (const float one : found) expect(one == value, "a wrong result, and no error");
}

void sum(const StreamRank& rank, const Operation& operation) {
  Communicator& communicator = rank.communicator;
  const auto total = static_cast<float>(communicator.size() * (communicator.size() + 1) / 2);
  if (!rank.has_device()) {
    std::vector<float> host(operation.count, static_cast<float>(communicator.rank() + 1));
    communicator.all_reduce(std::span(host));
    return expect(host.back() == total, "a wrong result, and no error");
  }
  std::byte* const memory = memory_of(rank, operation);
  communicator
      .all_reduce_async(memory, memory, operation.count, ElementType::kFloat32, ReduceOp::kSum,
                        on(rank))
      .wait();
  expect_all(memory, operation.count, total);
}

void broadcast(const StreamRank& rank, const Operation& operation) {
  std::byte* const memory = memory_of(rank, operation);
  rank.communicator.broadcast_async(memory, operation.count, ElementType::kFloat32, 0, on(rank))
      .wait();
  expect_all(memory, operation.count, 1);
}

// The end of what was replayed, no driver being asked.
void run_out(const StreamRank& rank) {
  const Deadline deadline = Clock::now() + 60s;
  while (!rank.machine.run()) {
    rank.communicator.progress();
    expect(Clock::now() < deadline, "replays do not come to their end");
  }
}

void capture(const StreamRank& rank, const Operation& operation) {
  std::byte* const memory = memory_of(rank, operation);
  rank.driver.capture(rank.stream);
  std::exception_ptr error;
  try {
    rank.communicator.all_reduce(memory, memory, operation.count, ElementType::kFloat32,
                                 ReduceOp::kSum, on(rank));
  } catch (...) {
    error = std::current_exception();
  }
  const FakeGraph* const graph = rank.driver.end_capture(rank.stream);
  if (error) std::rethrow_exception(error);
  rank.communicator.barrier();
  for (int round = 0; round < 2; ++round) rank.driver.replay(*graph, rank.stream);
  run_out(rank);
  expect_all(memory, operation.count, 6 * kRanks);  // in place: what is replayed sums up sums
  rank.communicator.barrier();
}

const std::array<Operation, 8>& operations() {
  using Kind = FakeDriver::Kind;
  static const std::array<Operation, 8> all = {{
      {.name = "all_reduce through slots", .run = sum},
      {.name = "all_reduce straight from memory", .count = 600'000, .run = sum},
      {.name = "all_reduce of memory that cannot be exported",
       .count = 600'000,
       .kind = Kind::kPool,
       .run = sum},
      {.name = "broadcast", .run = broadcast},
      {.name = "long broadcast", .count = 600'000, .run = broadcast},
      {.name = "captured all_reduce", .run = capture},
      {.name = "staged all_reduce", .transport = "inproc", .count = 100'000, .run = sum},
      {.name = "staged all_reduce with a rank on the host",
       .transport = "inproc",
       .count = 1009,
       .hosts = {2},
       .run = sum},
  }};
  return all;
}

struct Played {
  std::vector<RankOutcome> outcomes;
  std::map<std::string, int> calls;  // of the failing rank's
};

Played play(const Operation& operation, const std::string& function, int nth) {
  Played played;
  StreamJob job;
  job.size = kRanks;
  job.hosts = operation.hosts;
  job.options.transport = operation.transport;
  job.options.timeout = 60s;
  job.adjust = [&](int rank, FakeDriver& driver) {
    if (rank == kFailing && nth != 0) driver.fail(function, kPlanted, nth);
  };
  job.at_end = [&](int rank, FakeDriver& driver) {
    if (rank == kFailing) played.calls = driver.all_calls();
  };
  // A rank that ends waits half a second for its peers to close what they have mapped, and keeps it
  // else: under a sanitizer they may take longer.
  job.leaves_nothing = !kIsSanitized && !may_leave_something(function);
  played.outcomes = try_stream_ranks(job, [&](const StreamRank& rank) {
    operation.run(rank, operation);
    rank.communicator.barrier();
  });
  return played;
}

// The first calls of a function, and then ever fewer, since they repeat themselves. The thread
// sanitizer takes a hundred times as long, and sees in the first and the last what threads do at an
// end.
std::vector<int> which_of(int calls) {
  std::vector<int> which;
  if (kIsThreadSanitized && calls > 1) return {1, calls};
  for (int nth = 1; nth <= calls;
       nth += nth < (kIsSanitized ? 2 : 5) ? 1 : 1 + nth / (kIsSanitized ? 1 : 2))
    which.push_back(nth);
  if (calls > 0 && which.back() != calls) which.push_back(calls);
  return which;
}

void require_end(const Operation& operation, const std::string& function, int nth) {
  const Played played = play(operation, function, nth);
  for (std::size_t rank = 0; rank < played.outcomes.size(); ++rank) {
    const RankOutcome& outcome = played.outcomes[rank];
    INFO(operation.name << ", call " << nth << " of " << function << ", rank " << rank << ": "
                        << outcome.text);
    if (rank >= kRanks) {  // what was left, or done that nobody may
      CHECK(may_leave_something(function));
    } else if (!outcome.text.empty()) {
      CHECK(outcome.code.has_value());
      CHECK(outcome.code != ErrorCode::kDeadline);
      const char* const part = rank == kFailing ? "the driver's error 999" : "rank 1";
      CHECK(outcome.text.find(part) != std::string::npos);
    }
  }
}

// Of the operations from `first` up to `last`, every call in turn.
void fail_every_call(std::size_t first, std::size_t last) {
  for (std::size_t i = first; i <= last; ++i) {
    const Operation& operation = operations()[i];
    const Played whole = play(operation, "", 0);
    for (const RankOutcome& outcome : whole.outcomes) {
      INFO(operation.name << ", nothing planted: " << outcome.text);
      REQUIRE(outcome.text.empty());
    }
    for (const auto& [function, calls] : whole.calls) {
      for (const int nth : which_of(calls)) require_end(operation, function, nth);
    }
  }
}

}  // namespace

TEST_CASE("whatever call fails in an all_reduce on streams, all ranks end, and nothing stays") {
  fail_every_call(0, 2);
}

TEST_CASE("whatever call fails in a broadcast on streams, all ranks end, and nothing stays") {
  fail_every_call(3, 4);
}

TEST_CASE("whatever call fails in what is captured, all ranks end, and nothing stays") {
  fail_every_call(5, 5);
}

TEST_CASE("whatever call fails in what is staged, all ranks end, and nothing stays") {
  fail_every_call(6, 7);
}

}  // namespace kolo::test
