// Messages like one before take the short way of repeats_test.cpp: with the same checks and
// failures as the long one.
#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "test/collectives/ranks.h"
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

TEST_CASE("a message that is repeated is held against what is called at its other end") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, over(transport, 60s));
    std::vector<float> data(8, 1);
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t count : {2, 3}) {
        if (rank == 0) {
          communicator.send(data.data(), count, ElementType::kFloat32, 1);
        } else {
          communicator.receive(data.data(), count, ElementType::kFloat32, 0);
        }
      }
    }
    if (rank == 0) {
      communicator.send(data.data(), 3, ElementType::kFloat32, 1);
      communicator.barrier();
    } else {
      communicator.receive(data.data(), 2, ElementType::kFloat32, 0);
    }
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    REQUIRE(outcome.code == ErrorCode::kMismatch);
    REQUIRE(outcome.text.find("message #" + std::to_string(2 * kRounds)) != std::string::npos);
  }
}

TEST_CASE("a repeated message that never comes ends at its deadline, and names who owes it") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  std::promise<void> is_over;
  const auto end = is_over.get_future().share();
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator communicator(rank, 2, store, over(transport, 2s));
    std::vector<float> data(2);
    for (int round = 0; round < kRounds; ++round) {
      if (rank == 1) {
        communicator.send(data.data(), 2, ElementType::kFloat32, 0);
      } else {
        communicator.receive(data.data(), 2, ElementType::kFloat32, 1);
      }
    }
    if (rank == 1) return end.wait();
    const RankOutcome outcome =
        outcome_of([&] { communicator.receive(data.data(), 2, ElementType::kFloat32, 1); });
    is_over.set_value();
    expect(outcome.code == ErrorCode::kDeadline, outcome.text);
    expect(outcome.text.find("from rank 1") != std::string::npos, outcome.text);
  });
  INFO(outcomes[0].text);
  REQUIRE(outcomes[0].text.empty());
}

}  // namespace kolo::test
