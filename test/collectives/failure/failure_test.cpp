// Failures end on every rank within its deadline, with the same root cause.
#include <chrono>
#include <cstdlib>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/collectives/support/wait_for_failure.h"
#include "test/support/catch.h"
#include "transports/settings.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

CommunicatorOptions options_for(const std::string& transport, std::chrono::milliseconds timeout) {
  CommunicatorOptions options;
  options.transport = transport;
  options.timeout = timeout;
  return options;
}

using Outcomes = std::vector<RankOutcome>;

// Runs `body` with a communicator for every rank, and checks that it ended in time.
Outcomes run_to_failure(int size, const std::string& transport, std::chrono::milliseconds timeout,
                        const CommunicatorBody& body) {
  const auto start = Clock::now();
  auto outcomes = run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, size, store, options_for(transport, timeout));
    body(communicator);
  });
  const std::chrono::duration<double> seconds = Clock::now() - start;
  INFO("took " << seconds.count() << " s");
  REQUIRE(seconds < timeout + 3s);
  return outcomes;
}

void require_same_cause(const Outcomes& outcomes, ErrorCode code, const std::string& fragment) {
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == code);
    REQUIRE(outcome.text.find(fragment) != std::string::npos);
    REQUIRE(outcome.text == outcomes.front().text);
  }
}

using Calls = void (*)(Communicator&, std::vector<float>&);

void sum_of_8(Communicator& communicator, std::vector<float>& data) {
  communicator.all_reduce({data.data(), 8, ElementType::kFloat32}, ReduceOp::kSum);
}

struct Difference {
  const char* name;
  Calls others;  // rank 0 calls sum_of_8
  const char* said;
};

const Difference kDifferences[] = {
    {"operation",
     [](Communicator& c, std::vector<float>& data) {
       c.all_reduce({data.data(), 8, ElementType::kFloat32}, ReduceOp::kMax);
     },
     "all_reduce #1 of 8 float32 max"},
    {"count",
     [](Communicator& c, std::vector<float>& data) {
       c.all_reduce({data.data(), 4096, ElementType::kFloat32}, ReduceOp::kSum);
     },
     "all_reduce #1 of 4096 float32 sum"},
    {"no elements",
     [](Communicator& c, std::vector<float>& data) {
       c.all_reduce({data.data(), 0, ElementType::kFloat32}, ReduceOp::kSum);
       c.barrier();
     },
     "all_reduce #1 of 0 float32 sum"},
    {"type",
     [](Communicator& c, std::vector<float>& data) {
       c.all_reduce({data.data(), 8, ElementType::kInt32}, ReduceOp::kSum);
     },
     "all_reduce #1 of 8 int32 sum"},
    {"collective",
     [](Communicator& c, std::vector<float>& data) {
       c.broadcast({data.data(), 1000, ElementType::kFloat32}, 0);
     },
     "broadcast #1 of 1000 float32 from root 0"},
    {"a scale",
     [](Communicator& c, std::vector<float>& data) {
       c.all_reduce({data.data(), 8, ElementType::kFloat32}, ReduceOp::kScaledSum);
     },
     "all_reduce #1 of 8 float32 scaled_sum"},
    {"segment length",
     [](Communicator& c, std::vector<float>& data) {
       c.all_reduce({data.data(), 8, ElementType::kFloat32}, ReduceOp::kSum,
                    {.algorithm = "", .segment_bytes = 128});
     },
     "in segments of 128 bytes"},
    {"order",
     [](Communicator& c, std::vector<float>& data) {
       c.barrier();
       sum_of_8(c, data);
     },
     "barrier #1"},
};

// Polls with test() only, then throws the failure if there is one.
void ask_until_done(Work& work) {
  const Deadline patience = Clock::now() + 60s;
  while (!work.test()) expect(Clock::now() < patience, "test() is false for ever");
  work.wait();
}

}  // namespace

TEST_CASE("ranks that call different things all report which rank called what") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(2, 3);
  for (const Difference& difference : kDifferences) {
    INFO(transport << ", " << size << " ranks differ in " << difference.name);
    const auto outcomes = run_to_failure(size, transport, 5s, [&](Communicator& communicator) {
      std::vector<float> data(4096);
      communicator.barrier();
      (communicator.rank() == 0 ? sum_of_8 : difference.others)(communicator, data);
      communicator.barrier();
    });
    require_same_cause(outcomes, ErrorCode::kMismatch, difference.said);
    REQUIRE(outcomes[0].text.find("#1") != std::string::npos);
  }
}

TEST_CASE("two ranks that wait for each other's broadcast fail before the deadline") {
  const auto outcomes = run_to_failure(2, "inproc", 20s, [](Communicator& communicator) {
    float value = 0;
    communicator.broadcast({&value, 1, ElementType::kFloat32}, 1 - communicator.rank());
  });
  require_same_cause(outcomes, ErrorCode::kMismatch, "broadcast #0 of 1 float32 from root 1");
}

// The odd rank is not the root that it names, so the data that arrives need not match its call.
TEST_CASE("every rank fails if one rank names another root") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  // More ranks take other paths of the algorithms; these paths are the same over every transport.
  const int size = transport == transports_under_test().front() ? 5 : 3;
  for (const Collective collective :
       {Collective::kBroadcast, Collective::kReduce, Collective::kGather, Collective::kScatter}) {
    for (const std::string_view algorithm : algorithm_names(collective)) {
      INFO(to_string(collective) << " by " << algorithm << ", " << size << " over " << transport);
      const auto outcomes = run_to_failure(size, transport, 20s, [&](Communicator& communicator) {
        std::vector<float> in(static_cast<std::size_t>(size));
        std::vector<float> out(in.size());
        const int root = communicator.rank() == size - 1 ? 1 : 0;
        const CallOptions options{.algorithm = algorithm};
        communicator.barrier();
        const std::size_t count = in.size();
        const auto type = ElementType::kFloat32;
        if (collective == Collective::kBroadcast) {
          communicator.broadcast({out.data(), count, type}, root, options);
        } else if (collective == Collective::kReduce) {
          communicator.reduce({in.data(), count, type}, {out.data(), count, type}, root,
                              ReduceOp::kSum, options);
        } else if (collective == Collective::kGather) {
          communicator.gather(
              {in.data(), chunk_count(count, communicator.size(), communicator.rank()), type},
              {out.data(), count, type}, root, options);
        } else {
          communicator.scatter(
              {in.data(), count, type},
              {out.data(), chunk_count(count, communicator.size(), communicator.rank()), type},
              root, options);
        }
        while (true) communicator.barrier();
      });
      require_same_cause(outcomes, ErrorCode::kMismatch, "every rank must issue the same");
    }
  }
}

TEST_CASE("two roots that only send fail with a mismatch") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto size = GENERATE(2, 3);
  const auto outcomes = run_to_failure(size, transport, 20s, [](Communicator& communicator) {
    float value = 0;
    const int root = communicator.rank() == 0 ? 0 : 1;
    while (true) communicator.broadcast({&value, 1, ElementType::kFloat32}, root);
  });
  require_same_cause(outcomes, ErrorCode::kMismatch, "from root 1");
}

namespace {

void push_pull(Communicator& communicator, const ServerUpdate& update) {
  std::vector<float> data(1000);
  communicator.push_pull(data, data, ReduceOp::kSum, {.everywhere = true, .servers = {}}, update);
  communicator.barrier();
}

}  // namespace

TEST_CASE("a server's update may abort, and look at the statistics") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_to_failure(2, transport, 20s, [](Communicator& communicator) {
    push_pull(communicator, [&](std::size_t, std::span<std::byte>) {
      expect(communicator.statistics().operations == 0, "none has ended yet");
      if (communicator.rank() == 1) communicator.abort("the update has had enough");
    });
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "the update has had enough");
}

TEST_CASE("a server's update that would wait for itself is refused") {
  const auto outcomes = run_to_failure(2, "inproc", 20s, [](Communicator& communicator) {
    push_pull(communicator, [&](std::size_t, std::span<std::byte>) {
      if (communicator.rank() == 1) communicator.barrier();
    });
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "would wait for itself");
}

TEST_CASE("a timeout names both ranks, the wait and the step, on the late rank too") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, options_for(transport, 60s));
    std::vector<float> data(1 << 20);
    communicator.barrier();
    if (rank == 1) wait_for_failure(*store);
    CallOptions call;
    call.algorithm = "ring";
    call.timeout = 300ms;
    communicator.all_reduce(data, ReduceOp::kSum, call);
  });
  require_same_cause(outcomes, ErrorCode::kDeadline,
                     "timed out after 0.3 s in all_reduce #1, ring step");
  REQUIRE(outcomes[0].text.find("rank 0 (") == 0);
  REQUIRE(outcomes[0].text.find("rank 1 (" + transport + ")") != std::string::npos);
}

TEST_CASE("polling with test() reports a timeout and the rank that is missing") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, options_for(transport, 60s));
    communicator.barrier();
    std::vector<float> data(1000);
    CallOptions call;
    call.algorithm = "ring";
    call.timeout = 300ms;
    if (rank == 1) wait_for_failure(*store);
    Work work = communicator.all_reduce_async(data, ReduceOp::kSum, call);
    ask_until_done(work);
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, "timed out after 0.3 s in all_reduce #1");
  REQUIRE_THAT(outcomes[0].text, ContainsSubstring("is rank 1 alive"));
}

TEST_CASE(
    "polling with test() reports another rank's failure and publishes the rank it waits for") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 3, store, options_for(transport, 60s));
    communicator.barrier();
    std::vector<float> data(1000);
    CallOptions call;
    call.algorithm = "ring";
    if (rank == 2) call.timeout = 3s;  // waits for rank 1, which waits for rank 0
    if (rank == 0) wait_for_failure(*store);
    Work work = communicator.all_reduce_async(data, ReduceOp::kSum, call);
    if (rank == 2) return work.wait();
    ask_until_done(work);
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, "is rank 0 alive");
}

TEST_CASE("a timeout names the rank that holds up all others, not one that also waits for it") {
  const auto outcomes = run_threads(4, [&](int rank, const std::shared_ptr<Store>& store) {
    // Rank 0 is farthest from the cause and has the shortest timeout.
    Communicator communicator(rank, 4, store, options_for("inproc", 60s));
    std::vector<float> data(4096);
    communicator.barrier();
    if (rank == 1) wait_for_failure(*store);
    CallOptions call;
    call.algorithm = "ring";  // no rank can finish without the others
    if (rank == 0) call.timeout = 3s;
    communicator.all_reduce(data, ReduceOp::kSum, call);
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, "is rank 1 alive");
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.peer == 1);
}

// Messages between ranks 1 and 2 take 10 s: as if the path between them were cut.
TEST_CASE("where the path between two ranks is cut, all ranks are told of both") {
  ::setenv("KOLO_SHAPE", "100Gbit,1us+1-2:10Mbit,10s", 1);
  const auto outcomes = run_threads(3, [](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = "inproc";
    options.timeout = 2s;
    options.reproducibility = Reproducibility::kOrdered;  // measures nothing
    Communicator communicator(rank, 3, store, options);
    std::vector<float> data(3);
    communicator.all_reduce(data, ReduceOp::kSum, {.algorithm = "one_shot"});
    communicator.barrier();
  });
  ::unsetenv("KOLO_SHAPE");
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kDeadline);
    CHECK((outcome.peer == 1 || outcome.peer == 2));
    CHECK_THAT(outcome.text, ContainsSubstring("ranks 1 and 2 wait for each other"));
  }
}

TEST_CASE("the time that a rank computes does not count against its peers") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_to_failure(2, transport, 20s, [](Communicator& communicator) {
    std::vector<float> data(4096, 1);
    const auto issue_and_compute = [&] {
      Work work = communicator.all_reduce_async(data, ReduceOp::kSum, {.timeout = 100ms});
      const auto end = Clock::now() + 700ms;
      while (Clock::now() < end) std::this_thread::yield();
      return work;
    };
    issue_and_compute().wait();
    expect(data[4095] == 2, "a sum of both");
    if (communicator.rank() == 0) return issue_and_compute().wait();
    while (!communicator.failure()) std::this_thread::yield();  // makes no call meanwhile
  });
  CHECK(outcomes[1].text.empty());
  CHECK(outcomes[0].code == ErrorCode::kDeadline);
  CHECK_THAT(outcomes[0].text, ContainsSubstring("timed out after 0.1 s"));
}

TEST_CASE("a call's own timeout takes precedence in every form of the call") {
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, options_for("inproc", 60s));
    communicator.barrier();
    std::vector<std::int32_t> data(1000);
    CallOptions call;
    call.algorithm = "ring";
    call.timeout = 300ms;
    call.is_persistent = true;
    Work work = communicator.all_reduce_async(data, ReduceOp::kSum, call);
    if (rank == 1) wait_for_failure(*store);
    work.start();
    work.wait();
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, "timed out after 0.3 s in all_reduce #1");
}

TEST_CASE("a call's timeout below 0 is refused") {
  const auto outcomes = run_to_failure(1, "inproc", 20s, [](Communicator& communicator) {
    CallOptions call;
    call.timeout = -1ms;
    communicator.barrier(call);
  });
  REQUIRE_THAT(outcomes[0].text,
               ContainsSubstring("barrier: a timeout of -1 ms: give more than 0"));
}

TEST_CASE("a rank that never comes is named on every rank that waits for it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>& store) {
    if (rank == 1) return;
    const Communicator communicator(rank, 3, store, options_for(transport, 1s));
  });
  for (const std::size_t rank : {0U, 2U}) {
    INFO(outcomes[rank].text);
    REQUIRE(outcomes[rank].code == ErrorCode::kDeadline);
    REQUIRE(outcomes[rank].text.find("rank 1") != std::string::npos);
  }
}

TEST_CASE("abort reaches waiting ranks with its reason") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_to_failure(3, transport, 20s, [](Communicator& communicator) {
    float value = 0;
    communicator.barrier();
    if (communicator.rank() == 0) {
      communicator.abort("the disk is full");
      communicator.barrier();
    }
    communicator.all_reduce({&value, 1, ElementType::kFloat32}, ReduceOp::kSum);
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "aborted: the disk is full");
}

TEST_CASE("abort from another thread ends a wait of this rank") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, options_for("inproc", 20s));
    communicator.barrier();
    if (rank == 0) {
      wait_for_failure(*store);
      communicator.barrier();
      return;
    }
    float value = 0;
    Work work = communicator.broadcast_async({&value, 1, ElementType::kFloat32}, 0);
    std::thread other([&] { communicator.abort("asked to stop"); });
    const auto outcome = outcome_of([&] { work.wait(); });
    other.join();
    if (outcome.code) throw Error(*outcome.code, kNoPeer, outcome.text);
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "asked to stop");
}

TEST_CASE("a failed communicator throws the same cause again") {
  const auto outcomes = run_to_failure(2, "inproc", 5s, [](Communicator& communicator) {
    std::string first;
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        if (communicator.rank() == 0 && attempt == 0) communicator.abort("enough");
        communicator.barrier();
      } catch (const Error& error) {
        if (first.empty()) first = error.what();
        expect(first == error.what(), "another cause: " + std::string(error.what()));
        if (attempt == 2) throw;
      }
    }
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "enough");
}

TEST_CASE("a rank that leaves too early makes the others fail at once") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_to_failure(3, transport, 20s, [](Communicator& communicator) {
    communicator.barrier();
    if (communicator.rank() == 2) return;
    std::vector<float> data(100'000);
    for (int i = 0; i < 3; ++i) communicator.all_reduce(std::span<float>(data));
  });
  REQUIRE(outcomes[2].text.empty());
  INFO(outcomes[0].text);
  REQUIRE(outcomes[0].code == ErrorCode::kPeerLost);
  REQUIRE(outcomes[0].text.find("rank 2") != std::string::npos);
  REQUIRE(outcomes[0].text.find("all_reduce #1") != std::string::npos);
  REQUIRE(outcomes[1].text == outcomes[0].text);
  REQUIRE(outcomes[0].peer == 2);
  REQUIRE(outcomes[1].peer == 2);
}

TEST_CASE("a communicator destroyed with work in flight fails the job with that cause") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  // Until then rank 0 does not take part, and the work stays in flight.
  std::promise<void> destroyed;
  auto is_destroyed = destroyed.get_future();
  const auto outcomes = run_to_failure(2, transport, 20s, [&](Communicator& communicator) {
    std::vector<float> data(100'000);
    communicator.barrier();
    if (communicator.rank() == 1) {
      Work work;
      {
        const Communicator dying = std::move(communicator);
        work = const_cast<Communicator&>(dying).all_reduce_async(data, ReduceOp::kSum);
      }
      destroyed.set_value();
      work.wait();
    } else {
      is_destroyed.wait();
      communicator.all_reduce(std::span<float>(data));
      communicator.barrier();
    }
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "destroyed with all_reduce #1");
}

TEST_CASE("KOLO_TIMEOUT_MS is the default timeout, and the message names it") {
  set_setting("KOLO_TIMEOUT_MS", "300");
  const RankOutcome outcome = outcome_of([] { Communicator(0, 2, make_local_store()); });
  set_setting("KOLO_TIMEOUT_MS", "");
  INFO(outcome.text);
  CHECK(outcome.code == ErrorCode::kDeadline);
  CHECK_THAT(outcome.text, ContainsSubstring("rank 0: waited 0.3 s for rank 1 of 2") &&
                               ContainsSubstring("raise the timeout (KOLO_TIMEOUT_MS"));
}

TEST_CASE("a timeout of a millisecond is printed as such") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, options_for("shm", 20s));
    if (rank == 1) {
      wait_for_failure(*store);
      return;
    }
    CallOptions call;
    call.timeout = 1ms;
    communicator.barrier(call);
  });
  CHECK_THAT(outcomes[0].text, ContainsSubstring(" timed out after 1 ms in barrier #0"));
}

}  // namespace kolo::test
