// Fault injection: any driver or kernel call may fail, in any operation on streams. Every rank must
// end with a right result or an error with the cause, and without leftovers.
//
// An operation runs once without a fault, to record the calls of rank 1. It then runs once for each
// of these calls, which fails.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"
#include "test/support/sanitizers.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr int kPlanted = 999;
constexpr int kRanks = 3;
constexpr int kFailing = 1;  // any rank

// Functions that release resources, or that are called for it. If one fails, its resource stays
// allocated; nothing can be done about that. An event that could not be recorded never completes,
// so earlier work in the stream may use its memory until the process ends.
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
  int ranks = kRanks;
  const char* algorithm = "";  // of all_reduce; empty: the planner's
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
  CallOptions options = on(rank);
  options.algorithm = operation.algorithm;
  communicator
      .all_reduce_async({memory, operation.count, ElementType::kFloat32}, ReduceOp::kSum, options)
      .wait();
  expect_all(memory, operation.count, total);
}

void broadcast(const StreamRank& rank, const Operation& operation) {
  std::byte* const memory = memory_of(rank, operation);
  rank.communicator.broadcast_async({memory, operation.count, ElementType::kFloat32}, 0, on(rank))
      .wait();
  expect_all(memory, operation.count, 1);
}

// Runs the replays to their end without a driver call.
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
    rank.communicator.all_reduce({memory, operation.count, ElementType::kFloat32}, ReduceOp::kSum,
                                 on(rank));
  } catch (...) {
    error = std::current_exception();
  }
  const FakeGraph* const graph = rank.driver.end_capture(rank.stream);
  if (error) std::rethrow_exception(error);
  rank.communicator.barrier();
  for (int round = 0; round < 2; ++round) rank.driver.replay(*graph, rank.stream);
  run_out(rank);
  expect_all(memory, operation.count, 6 * kRanks);  // in place: each replay sums the sums before it
  rank.communicator.barrier();
}

const std::array<Operation, 10>& operations() {
  using Kind = FakeDriver::Kind;
  static const std::array<Operation, 10> all = {{
      {.name = "all_reduce through slots", .run = sum},
      {.name = "all_reduce straight from memory",
       .count = 600'000,
       .algorithm = "double_tree",
       .run = sum},
      {.name = "all_reduce of memory that cannot be exported",
       .count = 600'000,
       .kind = Kind::kPool,
       .algorithm = "double_tree",
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
      {.name = "all_reduce with answers in place",
       .count = 600'000,
       .ranks = 2,
       .algorithm = "ring",
       .run = sum},
      {.name = "all_reduce with answers that cannot be mapped",
       .count = 600'000,
       .kind = Kind::kPool,
       .ranks = 2,
       .algorithm = "ring",
       .run = sum},
  }};
  return all;
}

struct Played {
  std::vector<RankOutcome> outcomes;
  std::map<std::string, int> calls;  // of the failing rank
};

Played play(const Operation& operation, const std::string& function, int nth) {
  Played played;
  StreamJob job;
  job.size = operation.ranks;
  job.hosts = operation.hosts;
  job.options.transport = operation.transport;
  job.options.timeout = 60s;
  job.adjust = [&](int rank, FakeDriver& driver) {
    if (rank == kFailing && nth != 0) driver.fail(function, kPlanted, nth);
  };
  job.at_end = [&](int rank, FakeDriver& driver) {
    if (rank == kFailing) played.calls = driver.all_calls();
  };
  // A rank that ends waits half a second for its peers to close their mappings, then leaves the
  // memory. Under a sanitizer the peers may take longer.
  job.leaves_nothing = !kIsSanitized && !may_leave_something(function);
  played.outcomes = try_stream_ranks(job, [&](const StreamRank& rank) {
    operation.run(rank, operation);
    rank.communicator.barrier();
  });
  return played;
}

// The first calls of a function, then fewer and fewer, because calls repeat. The thread sanitizer
// takes a hundred times as long. The first and the last call are enough to check the threads at an
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

struct Fault {
  std::string function;
  int nth;  // call of it, from 1
};

// Plays several faults at once, each on a machine of its own: a play mostly waits.
std::vector<Played> play_all(const Operation& operation, const std::vector<Fault>& faults) {
  constexpr std::size_t kAtOnce = 4;
  std::vector<Played> all(faults.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < faults.size(); at = next++)
        all[at] = play(operation, faults[at].function, faults[at].nth);
    });
  }
  threads.clear();
  return all;
}

void require_end(const Operation& operation, const Fault& fault, const Played& played) {
  const auto& [function, nth] = fault;
  for (std::size_t rank = 0; rank < played.outcomes.size(); ++rank) {
    const RankOutcome& outcome = played.outcomes[rank];
    INFO(operation.name << ", call " << nth << " of " << function << ", rank " << rank << ": "
                        << outcome.text);
    if (rank >=
        static_cast<std::size_t>(operation.ranks)) {  // extra outcomes: leftovers and violations
      CHECK(may_leave_something(function));
    } else if (!outcome.text.empty()) {
      CHECK(outcome.code.has_value());
      CHECK(outcome.code != ErrorCode::kDeadline);
      const char* const part = rank == kFailing ? "the driver's error 999" : "rank 1";
      CHECK(outcome.text.find(part) != std::string::npos);
    }
  }
}

// Fails every call of the operations from `first` to `last`, one at a time. Their threads are the
// same, so the thread sanitizer gets one operation.
void fail_every_call(std::size_t first, std::size_t last) {
  if (kIsThreadSanitized) last = first;
  for (std::size_t i = first; i <= last; ++i) {
    const Operation& operation = operations()[i];
    const Played whole = play(operation, "", 0);
    for (const RankOutcome& outcome : whole.outcomes) {
      INFO(operation.name << ", nothing planted: " << outcome.text);
      REQUIRE(outcome.text.empty());
    }
    std::vector<Fault> faults;
    for (const auto& [function, calls] : whole.calls) {
      for (const int nth : which_of(calls)) faults.push_back({function, nth});
    }
    const std::vector<Played> all = play_all(operation, faults);
    for (std::size_t at = 0; at < faults.size(); ++at) require_end(operation, faults[at], all[at]);
  }
}

}  // namespace

TEST_CASE("an all_reduce on streams ends without leftovers whatever call fails") {
  fail_every_call(0, 2);
}

TEST_CASE("a broadcast on streams ends without leftovers whatever call fails") {
  fail_every_call(3, 4);
}

TEST_CASE("a captured operation ends without leftovers whatever call fails") {
  fail_every_call(5, 5);
}

TEST_CASE("an answered all_reduce ends without leftovers whatever call fails") {
  fail_every_call(8, 9);
}

TEST_CASE("a staged operation ends without leftovers whatever call fails") {
  fail_every_call(6, 7);
}

}  // namespace kolo::test
