// Graph capture: calls on streams captured into graphs, replays of every algorithm and beside live
// calls, refused captures, and replays after a rank is lost.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/algorithms/algorithm_table.h"
#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCount = 1009;

std::vector<float> numbers(int rank, int round) {
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank * 31 + round)) % 97);
  return values;
}

void fill(std::byte* memory, const std::vector<float>& values) {
  std::memcpy(memory, values.data(), values.size() * sizeof(float));
}

bool holds_sum(const std::byte* memory, int size, int round) {
  std::vector<float> sum(kCount);
  for (int rank = 0; rank < size; ++rank) {
    const auto values = numbers(rank, round);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] += values[i];
  }
  return std::memcmp(memory, sum.data(), kCount * sizeof(float)) == 0;
}

std::byte* memory_of(const StreamRank& rank, std::size_t count = kCount) {
  return rank.upload(std::vector<std::byte>(count * sizeof(float)));
}

CallOptions on(cuda::Stream stream, std::string_view algorithm = {}) {
  CallOptions options;
  options.stream = DeviceStream{stream};
  options.algorithm = algorithm;
  return options;
}

void sum(const StreamRank& rank, std::byte* memory, const CallOptions& options,
         std::size_t count = kCount) {
  rank.communicator.all_reduce({memory, count, ElementType::kFloat32}, ReduceOp::kSum, options);
}

FakeGraph* captured(const StreamRank& rank, const std::function<void()>& calls) {
  rank.driver.capture(rank.stream);
  calls();
  return rank.driver.end_capture(rank.stream);
}

std::string refusal(const std::function<void()>& body) {
  const RankOutcome outcome = outcome_of(body);
  return outcome.is_bug ? outcome.text : "not refused: " + outcome.text;
}

void expect_said(const std::string& text, const std::string& part) {
  expect(text.find(part) != std::string::npos, "'" + part + "' is not in: " + text);
}

// A device that runs by itself, without any host: ranks that wait for the end of replays make no
// driver call.
class OnItsOwn {
 public:
  explicit OnItsOwn(FakeMachine& machine)
      : thread_([this, &machine] {
          std::unique_lock lock(mutex_);
          while (!is_over_) {
            machine.run();
            changed_.wait_for(lock, 1ms);
          }
        }) {}
  ~OnItsOwn() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

StreamJob job_of(int size) {
  StreamJob job;
  job.size = size;
  job.options.timeout = 60s;
  return job;
}

}  // namespace

TEST_CASE("a captured all_reduce is replayed with new data, with live calls between") {
  for (const int size : {1, 2, 4}) {
    run_stream_ranks(job_of(size), [size](const StreamRank& rank) {
      std::byte* const memory = memory_of(rank);
      std::byte* const live = memory_of(rank);
      const auto before = numbers(rank.communicator.rank(), 100);
      fill(memory, before);
      const FakeGraph* const graph = captured(rank, [&] { sum(rank, memory, on(rank.stream)); });
      expect(std::memcmp(memory, before.data(), kCount * sizeof(float)) == 0, "it has run");
      for (int round = 0; round < 3; ++round) {
        fill(memory, numbers(rank.communicator.rank(), round));
        fill(live, numbers(rank.communicator.rank(), 50 + round));
        rank.driver.replay(*graph, rank.stream);
        // Without scratch, whose first allocation may wait for the replay.
        sum(rank, live, on(rank.stream, "ring"));
        rank.synchronize();
        expect(holds_sum(memory, size, round), "replay " + std::to_string(round));
        expect(holds_sum(live, size, 50 + round), "live call " + std::to_string(round));
        std::vector<float> host(5, 1);
        rank.communicator.all_reduce(std::span(host));
        expect(host[4] == static_cast<float>(size), "on the host");
      }
    });
  }
}

TEST_CASE("every algorithm that supports streams can be captured") {
  for (const int size : {2, 3, 4}) {
    run_stream_ranks(job_of(size), [size](const StreamRank& rank) {
      for (const std::string_view name : algorithm_names(Collective::kAllReduce)) {
        std::byte* const memory = memory_of(rank);
        const FakeGraph* const graph =
            captured(rank, [&] { sum(rank, memory, on(rank.stream, name)); });
        for (int round = 0; round < 2; ++round) {
          fill(memory, numbers(rank.communicator.rank(), round));
          rank.driver.replay(*graph, rank.stream);
          rank.synchronize();
          expect(holds_sum(memory, size, round), std::string(name));
        }
      }
    });
  }
}

TEST_CASE("a graph of several collectives is replayed without synchronization of its ranks") {
  run_stream_ranks(job_of(3), [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    std::byte* const parts = memory_of(rank, 3 * kCount);
    const FakeGraph* const graph = captured(rank, [&] {
      rank.communicator.barrier(on(rank.stream));
      sum(rank, memory, on(rank.stream));
      rank.communicator.broadcast({memory, kCount, ElementType::kFloat32}, 1, on(rank.stream));
      rank.communicator.all_gather(
          {memory, chunk_count(3 * kCount, rank.communicator.size(), rank.communicator.rank()),
           ElementType::kFloat32},
          {parts, 3 * kCount, ElementType::kFloat32}, on(rank.stream));
      rank.communicator.all_reduce({memory, 0, ElementType::kFloat32}, ReduceOp::kSum,
                                   on(rank.stream));
    });
    fill(memory, numbers(rank.communicator.rank(), 0));
    for (int i = 0; i < 4; ++i) rank.driver.replay(*graph, rank.stream);
    rank.synchronize();
    std::vector<float> expected(kCount);
    for (int other = 0; other < 3; ++other) {
      const auto values = numbers(other, 0);
      for (std::size_t i = 0; i < kCount; ++i) expected[i] += values[i];
    }
    for (float& value : expected) value *= 27;
    for (std::size_t part = 0; part < 3; ++part) {
      const std::byte* const at = parts + part * kCount * sizeof(float);
      expect(std::memcmp(at, expected.data(), kCount * sizeof(float)) == 0, "a wrong part");
    }
  });
}

TEST_CASE("captured calls go through slots, so no peer memory is opened anew") {
  constexpr std::size_t kLong = 1'000'003;  // zero copy if not captured
  run_stream_ranks(job_of(2), [](const StreamRank& rank) {
    std::byte* const first = memory_of(rank, kLong);
    std::byte* const second = memory_of(rank, kLong);
    std::byte* const pooled =
        rank.driver.make_memory(kLong * sizeof(float), FakeDriver::Kind::kPool, rank.device);
    rank.uploads.push_back(pooled);
    const FakeGraph* graphs[3] = {};
    graphs[0] = captured(rank, [&] { sum(rank, first, on(rank.stream), kLong); });
    const int opened = rank.driver.calls("ipc_open");
    graphs[1] = captured(rank, [&] { sum(rank, second, on(rank.stream), kLong); });
    graphs[2] = captured(rank, [&] { sum(rank, pooled, on(rank.stream), kLong); });
    expect(rank.driver.calls("ipc_open") == opened, "something was opened");
    for (std::byte* const memory : {first, second, pooled}) {
      const std::vector<float> ones(kLong, 1);
      std::memcpy(memory, ones.data(), kLong * sizeof(float));
    }
    for (const FakeGraph* const graph : graphs) rank.driver.replay(*graph, rank.stream);
    rank.synchronize();
    for (std::byte* const memory : {first, second, pooled}) {
      float last = 0;
      std::memcpy(&last, memory + (kLong - 1) * sizeof(float), sizeof(last));
      expect(last == 2, "a wrong sum");
    }
  });
}

TEST_CASE("the Work of a captured call, also persistent, is done once all have captured it") {
  run_stream_ranks(job_of(2), [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    CallOptions options = on(rank.stream);
    options.is_persistent = true;
    Work plan = rank.communicator.all_reduce_async({memory, kCount, ElementType::kFloat32},
                                                   ReduceOp::kSum, options);
    const FakeGraph* const graph = captured(rank, [&] {
      plan.start();
      plan.wait();
    });
    fill(memory, numbers(rank.communicator.rank(), 1));
    rank.driver.replay(*graph, rank.stream);
    rank.synchronize();
    expect(holds_sum(memory, 2, 1), "a replay of a plan");
    fill(memory, numbers(rank.communicator.rank(), 2));
    plan.start();
    plan.wait();
    expect(holds_sum(memory, 2, 2), "the plan, live");
  });
}

TEST_CASE("captures over hosts and of messages are refused before anything is sent") {
  StreamJob job = job_of(2);
  job.options.transport = "shm";
  run_stream_ranks(job, [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    captured(rank, [&] {
      expect_said(
          refusal([&] { sum(rank, memory, on(rank.stream)); }),
          "all_reduce: the stream is being captured into a graph, and the channel to rank " +
              std::to_string(1 - rank.communicator.rank()) + " cannot: hosts carry its segments");
    });
    fill(memory, numbers(rank.communicator.rank(), 0));
    sum(rank, memory, on(rank.stream));
    rank.synchronize();
    expect(holds_sum(memory, 2, 0), "all is well");
  });
  run_stream_ranks(job_of(2), [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    captured(rank, [&] {
      expect_said(refusal([&] {
                    rank.communicator.send({memory, kCount, ElementType::kFloat32},
                                           1 - rank.communicator.rank(), on(rank.stream));
                  }),
                  "a message cannot be replayed");
    });
  });
}

TEST_CASE("a captured call on one rank only is a mismatch") {
  const auto outcomes = try_stream_ranks(job_of(2), [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    if (rank.communicator.rank() == 0) rank.driver.capture(rank.stream);
    const auto call = [&] {
      sum(rank, memory, on(rank.stream));
      rank.communicator.barrier();
    };
    const RankOutcome outcome = outcome_of(call);
    if (rank.communicator.rank() == 0) rank.driver.end_capture(rank.stream);
    expect(outcome.code == ErrorCode::kMismatch, outcome.text);
    expect_said(outcome.text, "into a graph");
    expect_said(outcome.text, "into no graph");
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

TEST_CASE("a replay without a lost rank ends, and the next call reports the cause") {
  for (const bool has_thread : {false, true}) {
    StreamJob job = job_of(2);
    job.options.progress_thread = has_thread;
    job.ends_apart = true;
    // set by rank 0 after the barrier; inside it, rank 0 would see the abort
    std::promise<void> left;
    const auto outcomes = try_stream_ranks(job, [&left, has_thread](const StreamRank& rank) {
      std::byte* const memory = memory_of(rank);
      const FakeGraph* const graph = captured(rank, [&] { sum(rank, memory, on(rank.stream)); });
      fill(memory, numbers(rank.communicator.rank(), 0));
      rank.driver.replay(*graph, rank.stream);
      rank.synchronize();
      expect(holds_sum(memory, 2, 0), "while both were there");
      rank.communicator.barrier();
      if (rank.communicator.rank() == 0) left.set_value();
      if (rank.communicator.rank() == 1) {
        expect(left.get_future().wait_for(60s) == std::future_status::ready, "rank 0 is done");
        rank.communicator.abort("enough");
        return;
      }
      const OnItsOwn device(rank.machine);
      for (int i = 0; i < 2; ++i) {  // the second time the failure is already known
        rank.driver.replay(*graph, rank.stream);
        if (has_thread) {
          cuda::Event event = nullptr;
          rank.driver.create_event(&event, 0);
          rank.driver.record_event(event, rank.stream);
          const Deadline deadline = Clock::now() + 60s;  // no call of the communicator meanwhile
          while (!rank.driver.has_reached(event))
            expect(Clock::now() < deadline, "the stream still waits");
          rank.driver.destroy_event(event);
        } else {
          rank.synchronize();
        }
      }
      const RankOutcome outcome = outcome_of([&] { sum(rank, memory, on(rank.stream)); });
      expect_said(outcome.text, "rank 1");
      expect_said(outcome.text, "aborted: enough");
    });
    for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
  }
}

TEST_CASE("a replay without a rank that has ended fails") {
  StreamJob job = job_of(2);
  job.ends_apart = true;
  const auto outcomes = try_stream_ranks(job, [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    const FakeGraph* const graph = captured(rank, [&] { sum(rank, memory, on(rank.stream)); });
    rank.communicator.barrier();
    if (rank.communicator.rank() == 1) return;
    const OnItsOwn device(rank.machine);
    rank.driver.replay(*graph, rank.stream);
    rank.synchronize();
    const RankOutcome outcome = outcome_of([&] { sum(rank, memory, on(rank.stream)); });
    expect(outcome.code == ErrorCode::kPeerLost, outcome.text);
    expect_said(outcome.text, "rank 1");
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

}  // namespace kolo::test
