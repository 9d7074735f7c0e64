// An exception destroys the memory of operations in flight before their communicator.
#include <algorithm>
#include <chrono>
#include <future>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectives/report_exceptions.h"
#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

std::vector<RankOutcome> run_two(const std::string& transport, const CommunicatorBody& body) {
  return run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = 20s;
    Communicator communicator(rank, 2, store, options);
    body(communicator);
  });
}

}  // namespace

TEST_CASE("a rank that expects more from one that left by an exception is told so") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_two(transport, [&](Communicator& communicator) {
    communicator.barrier();
    if (communicator.rank() == 0) {
      std::vector<float> data(1000);
      while (true) communicator.all_reduce(std::span<float>(data));
    }
    const Communicator leaving = std::move(communicator);
    throw std::runtime_error("the disk is full");
  });
  INFO(outcomes[0].text);
  CHECK(outcomes[0].code == ErrorCode::kPeerLost);
  CHECK_THAT(outcomes[0].text, Catch::Matchers::StartsWith("rank 1 (") &&
                                   ContainsSubstring("has left by an exception"));
}

TEST_CASE("an exception that leaves a reported body reaches the other ranks in its own words") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_two(transport, [&](Communicator& communicator) {
    report_exceptions(communicator, [&] {
      communicator.barrier();
      if (communicator.rank() == 1) throw std::runtime_error("the disk is full");
      std::vector<float> data(1000);
      while (true) communicator.all_reduce(std::span<float>(data));
    });
  });
  INFO(outcomes[0].text);
  CHECK(outcomes[0].code == ErrorCode::kAborted);
  CHECK(outcomes[0].peer == 1);
  CHECK_THAT(outcomes[0].text, ContainsSubstring(") aborted: the disk is full"));
  CHECK(outcomes[1].text == "the disk is full");
}

TEST_CASE("a reported body may return a value") {
  const auto outcomes = run_two("inproc", [&](Communicator& communicator) {
    expect(report_exceptions(communicator, [&] { return communicator.rank() + 1; }) ==
               communicator.rank() + 1,
           "the value of the body");
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

TEST_CASE("a communicator destroyed with work in flight no longer touches the memory") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  constexpr float kGone = -777;
  std::promise<void> sent;
  std::promise<void> destroyed;
  auto is_sent = sent.get_future();
  auto is_destroyed = destroyed.get_future();
  std::vector<float> given(50'000, 1);
  std::vector<float> wanted(1'000, 1);
  std::vector<float> taken(given.size());
  const auto outcomes = run_two(transport, [&](Communicator& communicator) {
    communicator.barrier();
    if (communicator.rank() == 0) {
      Work receive = communicator.receive_async(std::span<float>(wanted), 1);
      Work send = communicator.send_async(std::span<const float>(given), 1);
      is_sent.wait();
      // As when an exception unwinds: memory declared after the communicator is destroyed before
      // it.
      std::ranges::fill(wanted, kGone);
      std::ranges::fill(given, kGone);
      { const Communicator dying = std::move(communicator); }
      destroyed.set_value();
    } else {
      const std::vector<float> sum(wanted.size(), 2);
      communicator.send_async(std::span<const float>(sum), 0).wait();
      sent.set_value();
      is_destroyed.wait();
      communicator.receive(std::span<float>(taken), 0);
      communicator.barrier();
    }
  });
  INFO(outcomes[1].text);
  CHECK(outcomes[1].text.find("was destroyed with message") != std::string::npos);
  CHECK(std::ranges::count(wanted, kGone) == std::ssize(wanted));
  CHECK(std::ranges::count(taken, kGone) == 0);
}

}  // namespace kolo::test
