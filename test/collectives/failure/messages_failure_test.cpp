// Failures with several messages in flight: every message ends on every rank, with one cause.
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/collectives/support/wait_for_failure.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kInt = ElementType::kInt32;
constexpr std::size_t kLarge = 1 << 20;
using Ints = std::vector<std::int32_t>;
using Outcomes = std::vector<RankOutcome>;

using Body = std::function<void(Communicator& communicator, Store& store)>;

Outcomes run_with(int size, const std::string& transport, const Body& body) {
  return run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = 60s;
    Communicator communicator(rank, size, store, options);
    communicator.barrier();
    body(communicator, *store);
  });
}

void require_same_cause(const Outcomes& outcomes, ErrorCode code, const std::string& fragment) {
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == code);
    REQUIRE(outcome.text.find(fragment) != std::string::npos);
    REQUIRE(outcome.text == outcomes.front().text);
  }
}

// Waits until the job has failed, then throws the cause.
void await_failure(Communicator& communicator, Store& store) {
  wait_for_failure(store);
  communicator.barrier();
}

// A receive from every other rank and a large send to each, all in flight.
struct Exchange {
  explicit Exchange(Communicator& communicator)
      : sent(kLarge), received(static_cast<std::size_t>(communicator.size()), Ints(kLarge)) {
    for (int peer = 0; peer < communicator.size(); ++peer) {
      if (peer == communicator.rank()) continue;
      Ints& into = received[static_cast<std::size_t>(peer)];
      works.push_back(communicator.receive_async({into.data(), kLarge, kInt}, peer));
      works.push_back(communicator.send_async({sent.data(), kLarge, kInt}, peer));
    }
  }

  Ints sent;
  std::vector<Ints> received;
  std::vector<Work> works;
};

}  // namespace

TEST_CASE("an abort ends all messages in flight, with one cause") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto polls = GENERATE(0, 5);
  const auto outcomes = run_with(4, transport, [&](Communicator& communicator, Store& store) {
    Exchange exchange(communicator);
    if (communicator.rank() == 2) {
      for (int i = 0; i < polls; ++i) communicator.progress();
      communicator.abort("for a test");
    } else if (communicator.rank() == 3) {
      await_failure(communicator, store);
    }
    std::string last;
    for (auto work = exchange.works.rbegin(); work != exchange.works.rend(); ++work) {
      const std::string text = outcome_of([&] { work->wait(); }).text;
      if (!text.empty()) last = text;
    }
    expect(last.find("for a test") != std::string::npos, "no work was told: " + last);
    communicator.barrier();
  });
  require_same_cause(outcomes, ErrorCode::kAborted, "for a test");
}

TEST_CASE("destroying a communicator with messages in flight ends them everywhere") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(3, transport, [](Communicator& communicator, Store& store) {
    if (communicator.rank() == 0) {
      Exchange exchange(communicator);
      const Communicator gone = std::move(communicator);
      return;
    }
    // Rank 1 waits, so that rank 0 cannot have finished all messages when it goes.
    if (communicator.rank() == 1) await_failure(communicator, store);
    Exchange exchange(communicator);
    for (Work& work : exchange.works) work.wait();
    communicator.barrier();
  });
  CHECK(outcomes[0].text.empty());
  for (std::size_t rank = 1; rank < 3; ++rank) {
    INFO(outcomes[rank].text);
    CHECK(outcomes[rank].text.find("was destroyed with message") != std::string::npos);
  }
}

TEST_CASE("messages whose lengths differ between two ranks are an error that names both") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(3, transport, [](Communicator& communicator, Store& store) {
    const int rank = communicator.rank();
    Ints data(kLarge);
    Ints other(kLarge);
    if (rank == 0) {
      Work never = communicator.receive_async({data.data(), 5, kInt}, 2);
      Work differs = communicator.receive_async({other.data(), 7, kInt}, 1);
      never.wait();
    } else if (rank == 1) {
      communicator.send({data.data(), 8, kInt}, 0);
    }
    await_failure(communicator, store);
  });
  require_same_cause(outcomes, ErrorCode::kMismatch, "rank 1 called message #0 of 8 int32");
}

TEST_CASE("a collective that meets the peer's message is an error, with others in flight") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(2, transport, [](Communicator& communicator, Store& store) {
    Ints data(8);
    if (communicator.rank() == 0) {
      Work send = communicator.send_async({data.data(), 8, kInt}, 1);
      Work receive = communicator.receive_async({data.data(), 8, kInt}, 1);
      receive.wait();
    } else {
      communicator.all_reduce({data.data(), 8, kInt}, ReduceOp::kSum);
    }
    await_failure(communicator, store);
  });
  require_same_cause(outcomes, ErrorCode::kMismatch, "message #0 of 8 int32");
}

TEST_CASE("a timeout names the message that timed out, and its peer") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(4, transport, [](Communicator& communicator, Store& store) {
    const int rank = communicator.rank();
    Ints data(kLarge);
    Ints large(kLarge);
    if (rank == 0) {
      CallOptions call;
      call.timeout = 300ms;
      Work first = communicator.receive_async({data.data(), 1, kInt}, 1);
      Work second = communicator.receive_async({data.data() + 1, 1, kInt}, 2, call);
      Work third = communicator.send_async({large.data(), kLarge, kInt}, 3);
      third.wait();
      first.wait();
    }
    if (rank == 3) communicator.receive({large.data(), kLarge, kInt}, 0);
    await_failure(communicator, store);
  });
  INFO(outcomes[0].text);
  require_same_cause(outcomes, ErrorCode::kDeadline,
                     "receive of the call header from rank 2 (" + transport +
                         ") timed out after 0.3 s in message #0, direct step 1 of 1");
  REQUIRE(outcomes[0].text.find("is rank 2 alive") != std::string::npos);
}

// A wait is published after a second, so the jobs of all transports run at once.
TEST_CASE("a timeout names the receives that wait for each other") {
  const auto size = GENERATE(2, 3);
  const auto body = [&](Communicator& communicator, Store& store) {
    Ints data(1);
    const int rank = communicator.rank();
    CallOptions call;
    if (rank == 0) {
      call.timeout = 300ms;
      // Wait until the others have published the awaited rank, which they do after a second.
      for (int peer = 1; peer < size; ++peer)
        store.get("world/1/awaited/" + std::to_string(peer), Clock::now() + 60s);
    }
    communicator.receive({data.data(), 1, kInt}, (rank + 1) % size, call);
  };
  std::vector<std::pair<std::string, std::future<Outcomes>>> jobs;
  for (const std::string& transport : transports_under_test()) {
    jobs.emplace_back(transport, std::async(std::launch::async, [&, transport] {
                        return run_with(size, transport, body);
                      }));
  }
  for (auto& [transport, outcomes] : jobs) {
    INFO(transport);
    require_same_cause(outcomes.get(), ErrorCode::kDeadline,
                       size == 2 ? "; rank 1 itself waits to receive from rank 0: which of them is"
                                   " to"
                                 : "; rank 1 itself waits to receive from rank 2, rank 2 from rank"
                                   " 0: which of them is to send first?");
  }
}

TEST_CASE("receives that wait for each other end well if a send comes late") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(2, transport, [](Communicator& communicator, Store& store) {
    Ints data(2);
    const int peer = 1 - communicator.rank();
    std::thread receiver([&] { communicator.receive({data.data(), 1, kInt}, peer); });
    store.get("world/1/awaited/" + std::to_string(peer), Clock::now() + 60s);
    communicator.send({data.data() + 1, 1, kInt}, peer);
    receiver.join();
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

TEST_CASE("a send that no rank receives times out under its own name") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(3, transport, [](Communicator& communicator, Store& store) {
    Ints data(1);
    Ints large(16 * kLarge);  // more than the socket buffers hold
    if (communicator.rank() == 0) {
      CallOptions call;
      call.timeout = 300ms;
      Work receive = communicator.receive_async({data.data(), 1, kInt}, 1);
      communicator.send(large, 2, call);
      receive.wait();
    }
    await_failure(communicator, store);
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, "to rank 2 (" + transport + ") timed out");
}

TEST_CASE("a wait with a short deadline leaves the messages in flight") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(2, transport, [](Communicator& communicator, Store&) {
    Ints data(2);
    if (communicator.rank() == 1) {
      communicator.receive({data.data(), 1, kInt}, 0);
      communicator.send({data.data(), 1, kInt}, 0);
      return;
    }
    Work work = communicator.receive_async({data.data(), 1, kInt}, 1);
    const RankOutcome outcome = outcome_of([&] { work.wait(Clock::now() + 1ms); });
    expect(outcome.code == ErrorCode::kDeadline, outcome.text);
    communicator.send({data.data() + 1, 1, kInt}, 1);
    work.wait();
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

TEST_CASE("wait_any returns an operation that a failure has ended") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(3, transport, [](Communicator& communicator, Store&) {
    if (communicator.rank() == 2)
      communicator.abort(ErrorCode::kMismatch, 1, "rank 1 sent a wrong thing");
    std::vector<Ints> data(3, Ints(1));
    std::vector<Work> works;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == communicator.rank()) continue;
      Ints& into = data[static_cast<std::size_t>(peer)];
      works.push_back(communicator.receive_async({into.data(), 1, kInt}, peer));
    }
    const auto ended = wait_any(works, Clock::now() + 60s);
    expect(ended.has_value(), "nothing has ended");
    works[*ended].wait();
  });
  require_same_cause(outcomes, ErrorCode::kMismatch, "): rank 1 sent a wrong thing");
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.peer == 1);
  CHECK(outcomes[0].text.starts_with("rank 2 ("));
}

TEST_CASE("an abort in a group names the rank by its number in the job") {
  const auto outcomes = run_with(3, "inproc", [](Communicator& communicator, Store& store) {
    auto group = communicator.split(communicator.rank() == 0 ? -1 : 0);
    if (communicator.rank() == 2) group->abort(ErrorCode::kDeadline, 0, "rank 0 is late");
    await_failure(communicator, store);
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, "rank 0 is late (in a group");
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.peer == 1);
}

}  // namespace kolo::test
