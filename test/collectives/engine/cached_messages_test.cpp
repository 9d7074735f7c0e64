// Repeated messages take the call cache's fast path (engine/call_cache_test.cpp), with the same
// checks and failures as the normal path.
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 4;

CommunicatorOptions over(const std::string& transport, std::chrono::milliseconds timeout) {
  CommunicatorOptions options;
  options.transport = transport;
  options.timeout = timeout;
  return options;
}

}  // namespace

TEST_CASE("a repeated message is checked against the call of its peer") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, over(transport, 60s));
    std::vector<float> data(8, 1);
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t count : {2, 3}) {
        if (rank == 0) {
          communicator.send({data.data(), count, ElementType::kFloat32}, 1);
        } else {
          communicator.receive({data.data(), count, ElementType::kFloat32}, 0);
        }
      }
    }
    if (rank == 0) {
      communicator.send({data.data(), 3, ElementType::kFloat32}, 1);
      communicator.barrier();
    } else {
      communicator.receive({data.data(), 2, ElementType::kFloat32}, 0);
    }
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kMismatch);
    REQUIRE(outcome.text.find("message #" + std::to_string(2 * kRounds)) != std::string::npos);
  }
}

// One thread drives both ranks: every small message has arrived when it is received.
TEST_CASE("repeated messages do not starve a message that waits in the queue") {
  constexpr int kMost = 10'000;
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::vector<float> given(300'000, 3);
  std::vector<float> taken(given.size());
  std::array<std::optional<Communicator>, 2> ranks;
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    ranks[static_cast<std::size_t>(rank)].emplace(rank, 2, store, over(transport, 60s));
  });
  for (const RankOutcome& outcome : outcomes) REQUIRE(outcome.text.empty());
  float word = 1;
  const auto say = [&] {
    ranks[1]->send({&word, 1, ElementType::kFloat32}, 0);
    ranks[0]->receive({&word, 1, ElementType::kFloat32}, 1);
  };
  for (int round = 0; round < kRounds; ++round) say();
  Work sent = ranks[0]->send_async(given, 1);
  Work received = ranks[1]->receive_async(taken, 0);
  int said = 0;
  for (; said < kMost && !received.test(); ++said) say();
  INFO(said << " messages, and the large one is not there");
  REQUIRE(received.test());
  sent.wait();
  REQUIRE(taken == given);
}

// One thread drives both ranks, and rank 0 does nothing after it has issued its messages.
TEST_CASE("repeated messages leave at once while any number of receives is in flight") {
  constexpr std::size_t kMessages = 40;  // inproc has no room for so many
  const auto* const transport = GENERATE("shm", "tcp");
  std::array<std::optional<Communicator>, 2> ranks;
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    ranks[static_cast<std::size_t>(rank)].emplace(rank, 2, store, over(transport, 20s));
  });
  for (const RankOutcome& outcome : outcomes) REQUIRE(outcome.text.empty());
  const auto say = [&](std::size_t from, float word) {
    ranks[from]->send({&word, 1, ElementType::kFloat32}, static_cast<int>(1 - from));
    float heard = 0;
    ranks[1 - from]->receive({&heard, 1, ElementType::kFloat32}, static_cast<int>(from));
    REQUIRE(heard == word);
  };
  for (int round = 0; round < kRounds; ++round) {
    say(0, 1);
    say(1, 2);
  }
  std::array<float, kMessages> given{};
  std::array<float, kMessages> taken{};
  std::vector<Work> sent;
  std::vector<Work> received;
  for (std::size_t i = 0; i < kMessages; ++i) {
    given[i] = static_cast<float>(i);
    received.push_back(ranks[0]->receive_async({&taken[i], 1, ElementType::kFloat32}, 1));
    sent.push_back(ranks[0]->send_async({&given[i], 1, ElementType::kFloat32}, 1));
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    float word = -1;
    ranks[1]->receive({&word, 1, ElementType::kFloat32}, 0);
    REQUIRE(word == given[i]);
  }
  for (const float word : given) ranks[1]->send({&word, 1, ElementType::kFloat32}, 0);
  int ended = 0;
  for (Work& work : sent)
    work.when_done([&](const Error* failure) { ended += failure == nullptr; });
  REQUIRE(ended == kMessages);
  for (Work& work : sent) work.wait();
  for (Work& work : received) work.wait();
  REQUIRE(taken == given);
  REQUIRE_THROWS_AS(sent.front().start(), std::invalid_argument);
}

TEST_CASE("a repeated receive of a message that never comes times out and names the sender") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::promise<void> is_over;
  const auto end = is_over.get_future().share();
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, over(transport, 2s));
    std::vector<float> data(2);
    for (int round = 0; round < kRounds; ++round) {
      if (rank == 1) {
        communicator.send({data.data(), 2, ElementType::kFloat32}, 0);
      } else {
        communicator.receive({data.data(), 2, ElementType::kFloat32}, 1);
      }
    }
    if (rank == 1) return end.wait();
    const RankOutcome outcome = outcome_of([&] {
      communicator.receive({data.data(), 2, ElementType::kFloat32}, 1);
    });
    is_over.set_value();
    expect(outcome.code == ErrorCode::kDeadline, outcome.text);
    expect(outcome.text.find("from rank 1") != std::string::npos, outcome.text);
  });
  INFO(outcomes[0].text);
  REQUIRE(outcomes[0].text.empty());
}

}  // namespace kolo::test
