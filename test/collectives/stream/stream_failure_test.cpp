// Failures on streams: every rank gets the cause, and no stream is left waiting.
#include <chrono>
#include <cstring>
#include <future>
#include <latch>
#include <string>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCount = 1009;

Work sum_async(const StreamRank& rank, std::byte* memory, std::size_t count = kCount,
               std::chrono::milliseconds timeout = 0ms) {
  CallOptions options;
  options.timeout = timeout;
  options.stream = DeviceStream{rank.stream};
  return rank.communicator.all_reduce_async({memory, count, ElementType::kFloat32}, ReduceOp::kSum,
                                            options);
}

std::byte* memory_of(const StreamRank& rank) {
  return rank.upload(std::vector<std::byte>(kCount * sizeof(float)));
}

StreamJob job_of(int size) {
  StreamJob job;
  job.size = size;
  job.options.timeout = 60s;
  return job;
}

void require_cause(const std::vector<RankOutcome>& outcomes, ErrorCode code,
                   const std::string& part) {
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == code);
    CHECK(outcome.text.find(part) != std::string::npos);
    CHECK(outcome.text == outcomes.front().text);
  }
}

// Rank 1 does nothing until rank 0 has given up. Then it gets the cause.
class Late {
 public:
  void run(const StreamRank& rank, const std::function<void()>& what_rank_0_does) {
    if (rank.communicator.rank() == 0) {
      const RankOutcome outcome = outcome_of(what_rank_0_does);
      has_given_up_.set_value();
      what_rank_0_does();  // throws the same again
      throw std::runtime_error(outcome.text);
    }
    has_given_up_.get_future().wait();
    rank.communicator.barrier();
  }

 private:
  std::promise<void> has_given_up_;
};

}  // namespace

// A rank whose neighbor made the same call may have its result before the others fail.
TEST_CASE("a mismatch on streams is reported by the wait or by the next call") {
  const auto outcomes = try_stream_ranks(job_of(3), [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    const bool is_other = rank.communicator.rank() == 1;
    sum_async(rank, memory, is_other ? kCount - 1 : kCount).wait();
    rank.communicator.barrier();
  });
  require_cause(outcomes, ErrorCode::kMismatch, "#0 of 1008 float32 sum");
}

TEST_CASE("a mismatch of blocking calls on streams is reported by the next call") {
  const auto outcomes = try_stream_ranks(job_of(2), [](const StreamRank& rank) {
    std::byte* const memory = memory_of(rank);
    CallOptions options;
    options.stream = DeviceStream{rank.stream};
    if (rank.communicator.rank() == 0) {
      rank.communicator.all_gather(
          {memory, chunk_count(1, rank.communicator.size(), rank.communicator.rank()),
           ElementType::kFloat32},
          {memory, 1, ElementType::kFloat32}, options);
    } else {
      rank.communicator.all_reduce({memory, 1, ElementType::kFloat32}, ReduceOp::kSum, options);
    }
    rank.communicator.barrier();
  });
  require_cause(outcomes, ErrorCode::kMismatch, "all_gather #0");
}

TEST_CASE("a call on a stream and one on the host are a mismatch") {
  const auto outcomes = try_stream_ranks(job_of(2), [](const StreamRank& rank) {
    if (rank.communicator.rank() == 0) {
      sum_async(rank, memory_of(rank)).wait();
    } else {
      std::vector<float> host(kCount);
      rank.communicator.all_reduce(std::span<float>(host));
    }
  });
  require_cause(outcomes, ErrorCode::kMismatch, "on a stream");
}

TEST_CASE("a rank that ends while streams wait for it is named, and the streams go on") {
  for (const int size : {2, 3}) {
    std::latch are_made(size);  // a rank that is still being made would throw the cause there
    const auto outcomes = try_stream_ranks(job_of(size), [&](const StreamRank& rank) {
      are_made.arrive_and_wait();
      if (rank.communicator.rank() == 1) {
        rank.communicator.abort("enough");
        throw std::runtime_error("ended");
      }
      Work work = sum_async(rank, memory_of(rank));
      const RankOutcome outcome = outcome_of([&] { work.wait(); });
      rank.synchronize();
      expect(outcome.text.find("rank 1") != std::string::npos &&
                 outcome.text.find("aborted: enough") != std::string::npos,
             outcome.text);
    });
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
      CHECK(outcomes[rank].text == (rank == 1 ? "ended" : ""));
  }
}

TEST_CASE("streams are released while no thread calls, with and without a progress thread") {
  const bool has_thread = GENERATE(true, false);
  StreamJob job = job_of(2);
  job.options.progress_thread = has_thread;
  std::promise<void> is_given;
  const auto outcomes = try_stream_ranks(job, [&](const StreamRank& rank) {
    if (rank.communicator.rank() == 1) {
      is_given.get_future().wait();
      rank.communicator.abort("enough");
      return;
    }
    CallOptions options;
    options.stream = DeviceStream{rank.stream};
    std::byte* const memory = memory_of(rank);
    rank.communicator.all_reduce({memory, kCount, ElementType::kFloat32}, ReduceOp::kSum, options);
    cuda::Event event = nullptr;
    rank.driver.create_event(&event, 0);
    rank.driver.record_event(event, rank.stream);
    is_given.set_value();
    const Deadline deadline = Clock::now() + 60s;  // no call of the communicator meanwhile
    while (!rank.driver.has_reached(event))
      expect(Clock::now() < deadline, "the stream still waits");
    rank.driver.destroy_event(event);
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

TEST_CASE("a driver failure in the middle of an operation ends it on every rank") {
  for (const char* const function : {"word_operations", "record_event"}) {
    for (const int nth : {1, 2, 3}) {
      INFO("call " << nth << " of " << function);
      const auto outcomes = try_stream_ranks(job_of(3), [&](const StreamRank& rank) {
        std::byte* const memory = memory_of(rank);
        sum_async(rank, memory).wait();
        if (rank.communicator.rank() == 2) rank.driver.fail(function, cuda::kIllegalAddress, nth);
        for (int i = 0; i < 3; ++i) sum_async(rank, memory).wait();
        rank.communicator.barrier();  // ranks that had all they needed get the error here
      });
      require_cause(outcomes, ErrorCode::kSystem, "rank 2: cu");
    }
  }
}

TEST_CASE("a rank that does not call in time is named") {
  Late late;
  const auto outcomes = try_stream_ranks(job_of(2), [&](const StreamRank& rank) {
    late.run(rank, [&] { sum_async(rank, memory_of(rank), kCount, 400ms).wait(); });
  });
  require_cause(outcomes, ErrorCode::kDeadline,
                "all_reduce #0 of 1009 float32 sum on a stream (cuda_ipc) timed out after 0.4 s: "
                "rank 1 has not called it");
}

TEST_CASE("a device that does not finish is distinguished from a rank that is late") {
  StreamJob job = job_of(2);
  job.runs = FakeMachine::Runs::kWhenTold;
  const auto outcomes = try_stream_ranks(
      job, [](const StreamRank& rank) { sum_async(rank, memory_of(rank), kCount, 400ms).wait(); });
  require_cause(outcomes, ErrorCode::kDeadline, "every rank has called it, but the device has not");
}

TEST_CASE("a timeout in a wait for a long segment names the host and the step") {
  constexpr std::size_t kLong = 1'000'000;
  Late late;
  const auto outcomes = try_stream_ranks(job_of(2), [&](const StreamRank& rank) {
    std::byte* const memory = rank.upload(std::vector<std::byte>(kLong * sizeof(float)));
    CallOptions options;
    options.stream = DeviceStream{rank.stream};
    options.algorithm = "ring";
    options.timeout = 400ms;
    late.run(rank, [&] {
      rank.communicator.all_reduce({memory, kLong, ElementType::kFloat32}, ReduceOp::kSum, options);
    });
  });
  require_cause(outcomes, ErrorCode::kDeadline,
                "wait for rank 1 to enqueue its part of ring step 2 of 3 on its stream (cuda_ipc) "
                "timed out after 0.4 s in all_reduce #0");
}

}  // namespace kolo::test
