// Failures of key servers and their clients: one cause on all ranks, which names the rank.
#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/key_server.h"
#include "collectives/key_server/message.h"
#include "test/collectives/support/ranks.h"
#include "test/collectives/support/wait_for_failure.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using Kind = Consistency::Kind;
using Outcomes = std::vector<RankOutcome>;

// Two servers, ranks 0 and 1, of a key each. Ranks 2 and 3 are workers.
constexpr int kSize = 4;

KeyPlan plan_of(std::size_t elements = 200) {
  return plan_keys(std::vector<KeyRange>{{0, {elements / 2, elements / 2}}},
                   std::vector<int>{0, 1});
}

using WorkerBody = std::function<void(Communicator& communicator, KeyClient& client)>;

Outcomes run_with(
    const std::string& transport, const WorkerBody& body, Consistency rule = {},
    std::chrono::milliseconds timeout = 60s,
    const KeyUpdateFunction& update = [](const KeyUpdate&) {}) {
  return run_threads(kSize, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = timeout;
    Communicator communicator(rank, kSize, store, options);
    communicator.barrier();
    if (rank < 2) {
      const KeyPlan plan = plan_of();
      std::vector<float> values(plan.elements);
      serve_keys(communicator, plan, values, update, {.consistency = rule});
    } else {
      KeyClient client(communicator, plan_of());
      body(communicator, client);
    }
    // A server that had finished learns of the failure from its next call.
    wait_for_failure(*store);
    communicator.barrier();
  });
}

void require_same_cause(const Outcomes& outcomes, ErrorCode code, int peer,
                        const std::string& fragment) {
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == code);
    REQUIRE(outcome.peer == peer);
    REQUIRE(outcome.text.find(fragment) != std::string::npos);
    REQUIRE(outcome.text == outcomes.front().text);
  }
}

void iterate(KeyClient& client, std::int64_t iteration) {
  std::vector<float> data(100);
  std::vector<float> other(100);
  client.push_pull(1, iteration, data, 1, data);
  client.push_pull(0, iteration, other, 1, other);
  client.wait_all();
}

}  // namespace

TEST_CASE("a worker that aborts is named on all ranks") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(transport, [](Communicator& communicator, KeyClient& client) {
    for (std::int64_t iteration = 0;; ++iteration) {
      if (communicator.rank() == 3 && iteration == 5) communicator.abort("for a test");
      iterate(client, iteration);
    }
  });
  require_same_cause(outcomes, ErrorCode::kAborted, 3, "aborted: for a test");
}

TEST_CASE("an exception of the update ends all ranks with its text") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  int calls = 0;
  const auto outcomes = run_with(
      transport,
      [](Communicator&, KeyClient& client) {
        for (int i = 0;; ++i) iterate(client, i);
      },
      {}, 60s,
      [&](const KeyUpdate& update) {
        if (update.key == 1 && ++calls == 4) throw std::runtime_error("a negative mass");
      });
  require_same_cause(outcomes, ErrorCode::kAborted, 1, "a negative mass");
}

TEST_CASE("a silent worker is named after the timeout, and not the workers that wait for it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(
      transport,
      [](Communicator& communicator, KeyClient& client) {
        for (int i = 0; i < 3; ++i) iterate(client, i);
        if (communicator.rank() == 2) iterate(client, 3);
      },
      {}, 1s);
  require_same_cause(outcomes, ErrorCode::kDeadline, 3, "it waits for worker rank 3");
}

TEST_CASE("a silent server is named by the worker that waits for it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = 60s;
    Communicator communicator(rank, 2, store, options);
    communicator.barrier();
    if (rank == 1) {
      KeyClient client(communicator,
                       plan_keys(std::vector<KeyRange>{{0, {100}}}, std::vector<int>{0}), 300ms);
      std::vector<float> values(100);
      client.pull(0, values);
      client.wait(0);
    }
    wait_for_failure(*store);
    communicator.barrier();
  });
  require_same_cause(outcomes, ErrorCode::kDeadline, 0, "key server rank 0 has sent nothing");
}

TEST_CASE("a client that is destroyed with a key in flight ends the job") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(transport, [](Communicator& communicator, KeyClient& client) {
    if (communicator.rank() == 2) return client.progress();  // so that rank 3 gets no answer
    std::vector<float> values(100);
    KeyClient other(communicator, plan_of());
    other.push_pull(1, 0, values, 1, values);
  });
  require_same_cause(outcomes, ErrorCode::kAborted, 3, "was destroyed with key 1 in flight");
}

TEST_CASE("an iteration that goes backwards is an error that names the worker") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(transport,
                                 [](Communicator& communicator, KeyClient& client) {
                                   iterate(client, 7);
                                   if (communicator.rank() == 3) iterate(client, 6);
                                 },
                                 {Kind::kAsynchronous, 0});
  require_same_cause(outcomes, ErrorCode::kMismatch, 3, "worker rank 3 sent iteration 6 of key ");
}

TEST_CASE("a worker that runs ahead of its answers beyond the bound is an error") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(transport,
                                 [](Communicator& communicator, KeyClient& client) {
                                   if (communicator.rank() != 2) return;
                                   const std::vector<float> data(100);
                                   for (std::int64_t iteration = 0; iteration < 4; ++iteration) {
                                     client.push(0, iteration, data, 1);
                                     client.wait(0);
                                   }
                                 },
                                 {Kind::kBounded, 2});
  require_same_cause(outcomes, ErrorCode::kMismatch, 2,
                     "sent iteration 3 of key 0, more than 2 ahead of the slowest");
}

TEST_CASE("a worker with another plan is an error that names it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_with(transport, [](Communicator& communicator, KeyClient& client) {
    if (communicator.rank() == 2) return iterate(client, 0);
    KeyClient other(communicator, plan_of(180));
    std::vector<float> values(90);
    other.pull(1, values);
    other.wait(1);
  });
  require_same_cause(outcomes, ErrorCode::kMismatch, 3,
                     "worker rank 3 sent key 1 as 90 elements from 90, but here it has 100 from "
                     "100");
}

TEST_CASE("messages that no client would send are refused") {
  using key_server::Message;
  using key_server::MessageKind;
  const KeyPlan plan = plan_of();
  const Message good = key_server::message_of(MessageKind::kPushPull, plan, 0);
  CHECK(key_server::fault_of_request(good, plan, 0).empty());
  const auto fault = [&](auto change) {
    Message message = good;
    change(message);
    return key_server::fault_of_request(message, plan, 0);
  };
  CHECK(fault([](Message& m) { m.magic = 0; }).find("none of a key client") != std::string::npos);
  CHECK(fault([](Message& m) { m.kind = MessageKind::kAnswer; }).find("kind 5") !=
        std::string::npos);
  CHECK(fault([](Message& m) { m.key = 2; }).find("there are 2 keys") != std::string::npos);
  CHECK(fault([](Message& m) { m.key = 1; }).find("server rank 1") != std::string::npos);
  CHECK(fault([](Message& m) { m.count = 99; }).find("99 elements") != std::string::npos);
  CHECK(fault([](Message& m) { m.samples = -1; }).find("-1 samples") != std::string::npos);

  Message answer = key_server::message_of(MessageKind::kAnswer, plan, 1);
  CHECK(key_server::fault_of_answer(answer, plan, 1).empty());
  CHECK_FALSE(key_server::fault_of_answer(answer, plan, 0).empty());
  answer.kind = MessageKind::kPush;
  CHECK_FALSE(key_server::fault_of_answer(answer, plan, 1).empty());
}

}  // namespace kolo::test
