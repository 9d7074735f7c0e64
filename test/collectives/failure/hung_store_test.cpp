// A hung store (rank 0, its server, is stopped) delays neither the deadlines of a rank nor its
// destructor.
#include <algorithm>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/transports/store/hanging_server.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

// Timeout of connecting, and so of every store request without a deadline of its own.
constexpr auto kPatience = 25s;
// The calls under test take a second or less; kSoon is well above that and well below kPatience.
constexpr auto kSoon = 8s;

// `data` outlives the operations in flight.
using Rank1 = std::function<void(Communicator& communicator, std::vector<float>& data)>;

// Hangs rank 0 and the store's server. Returns the outcome of rank 1; its destructor must be quick.
RankOutcome outcome_beside_hung_rank(const std::string& transport, const Rank1& body) {
  HangingServer server;
  std::promise<void> is_over;
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>&) {
    const auto store = connect_tcp_store("127.0.0.1", server.port(), Clock::now() + kPatience, 0);
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = 60s;
    std::optional<Communicator> communicator(std::in_place, rank, 2, store, options);
    communicator->barrier();
    if (rank == 0) {
      is_over.get_future().wait_for(kPatience);
      return;
    }
    server.hang();
    std::vector<float> data(1000);
    const RankOutcome outcome = outcome_of([&] { body(*communicator, data); });
    const auto start = Clock::now();
    communicator.reset();
    const bool is_soon = Clock::now() - start < kSoon;
    is_over.set_value();
    expect(is_soon, "the end is held up");
    if (outcome.code) throw Error(*outcome.code, kNoPeer, outcome.text);
    expect(outcome.text.empty(), outcome.text);
  });
  return outcomes[1];
}

Work sum_async(Communicator& communicator, std::vector<float>& data, CallOptions options) {
  options.algorithm = "ring";
  return communicator.all_reduce_async(data, ReduceOp::kSum, options);
}

template <typename Body>
void expect_soon(const std::string& what, Body body) {
  const auto start = Clock::now();
  body();
  const std::chrono::duration<double> took = Clock::now() - start;
  expect(took < kSoon, [&] { return what + " took " + std::to_string(took.count()) + " s"; });
}

}  // namespace

TEST_CASE("a call keeps its timeout while the store hangs, and names the rank it waits for") {
  const auto transport = GENERATE("inproc", "tcp");
  const auto outcome =
      outcome_beside_hung_rank(transport, [](Communicator& communicator, std::vector<float>& data) {
        expect_soon("the call", [&] {
          const auto failed = outcome_of([&] {
            communicator.all_reduce(data, ReduceOp::kSum, {.algorithm = "ring", .timeout = 2s});
          });
          expect(failed.text.find("timed out after 2.0 s") != std::string::npos, failed.text);
          expect(failed.text.find("is rank 0 alive") != std::string::npos, failed.text);
          expect(failed.text.find("Note that rank 0, which serves the store at 127.0.0.1:") !=
                         std::string::npos &&
                     failed.text.find(", has not answered for ") != std::string::npos,
                 failed.text);
        });
      });
  CHECK(outcome.text.empty());
}

// Ranks 1 and 2 wait for each other. Rank 2 times out, and rank 1 sees that rank 2 has left.
TEST_CASE("all ranks blame the rank that serves a hung store, not the neighbour they wait for") {
  const auto transport = GENERATE("inproc", "shm", "tcp");
  HangingServer server;
  std::promise<void> is_over;
  std::latch all_are_ready(3);
  std::latch all_but_one_have_ended(2);
  const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>&) {
    const auto store = connect_tcp_store("127.0.0.1", server.port(), Clock::now() + kPatience, 0);
    Communicator communicator(rank, 3, store, {.transport = transport, .timeout = 60s});
    communicator.barrier();
    all_are_ready.arrive_and_wait();
    if (rank == 0) {
      server.hang();
      return all_but_one_have_ended.wait();
    }
    std::vector<float> data(1000);
    const auto timeout = rank == 2 ? 1500ms : 60s;
    const RankOutcome outcome = outcome_of(
        [&] { communicator.receive(std::span<float>(data), 3 - rank, {.timeout = timeout}); });
    { const Communicator leaving = std::move(communicator); }
    all_but_one_have_ended.count_down();
    throw Error(outcome.code.value(), outcome.peer, outcome.text);
  });
  for (const int rank : {1, 2}) {
    const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kPeerLost);
    CHECK(outcome.peer == 0);
    CHECK_THAT(outcome.text,
               Catch::Matchers::StartsWith("rank 0 is gone, which serves the store at 127.0.0.1:"));
  }
}

TEST_CASE("a wait keeps its deadline while the store hangs, and the destructor is quick") {
  const auto outcome =
      outcome_beside_hung_rank("inproc", [](Communicator& communicator, std::vector<float>& data) {
        Work work = sum_async(communicator, data, {});
        expect_soon("the wait", [&] { work.wait(Clock::now() + 2s); });
      });
  CHECK(outcome.code == ErrorCode::kDeadline);
  CHECK_THAT(outcome.text, ContainsSubstring("still in flight at the deadline given to wait()"));
}

TEST_CASE("polling with test() does not block on a hung store") {
  const auto transport = GENERATE("inproc", "tcp");
  const auto outcome =
      outcome_beside_hung_rank(transport, [](Communicator& communicator, std::vector<float>& data) {
        Work work = sum_async(communicator, data, {.timeout = 3s});
        const Deadline patience = Clock::now() + 60s;
        for (bool is_done = false; !is_done;) {
          expect_soon("test()", [&] { is_done = work.test(); });
          expect_soon("progress()", [&] { communicator.progress(); });
          expect(Clock::now() < patience, "test() is false for ever");
        }
        work.wait();
      });
  CHECK(outcome.code == ErrorCode::kPeerLost);
  CHECK_THAT(outcome.text, ContainsSubstring("timed out after 3.0 s"));
}

// A rank that has waited for a second publishes the awaited rank in the store. If the machine
// stalls for half a second just then, that looks like a blocked call: hence the retries.
TEST_CASE("polling at the deadline does not block on a store that is known to be silent") {
  const auto longest_call = [] {
    Clock::duration longest{};
    const auto outcome = outcome_beside_hung_rank(
        "inproc", [&](Communicator& communicator, std::vector<float>& data) {
          Work work = sum_async(communicator, data, {.timeout = 1500ms});
          const Deadline patience = Clock::now() + 60s;
          for (bool is_done = false; !is_done;) {
            const auto start = Clock::now();
            is_done = work.test();
            longest = std::max(longest, Clock::now() - start);
            expect(start < patience, "test() is false for ever");
          }
          work.wait();
        });
    CHECK(outcome.code == ErrorCode::kPeerLost);
    return longest;
  };
  bool is_any_soon = false;
  for (int i = 0; i < 5 && !is_any_soon; ++i) is_any_soon = longest_call() < 400ms;
  CHECK(is_any_soon);
}

TEST_CASE("abort and the destructor do not block on a hung store") {
  const bool aborts = GENERATE(false, true);
  const auto outcome =
      outcome_beside_hung_rank("inproc", [&](Communicator& communicator, std::vector<float>& data) {
        Work work = sum_async(communicator, data, {});
        if (!aborts) return;
        expect_soon("abort()", [&] { communicator.abort("enough"); });
        work.wait();
      });
  const bool says_enough = outcome.text.find("enough") != std::string::npos;
  CHECK(says_enough == aborts);
}

// As when rank 0 has served the store and returned from main.
TEST_CASE("a waiting rank goes on after the store has ended in good order") {
  std::optional<TcpStoreServer> server(std::in_place, "127.0.0.1", 0);
  std::promise<void> is_over;
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>&) {
    const auto store = connect_tcp_store("127.0.0.1", server->port(), Clock::now() + kPatience, 0);
    CommunicatorOptions options;
    options.transport = "inproc";
    Communicator communicator(rank, 2, store, options);
    std::vector<float> data(1000);
    communicator.barrier();
    if (rank == 0) server.reset();
    communicator.barrier();
    if (rank == 0) {
      is_over.get_future().wait_for(kPatience);
    } else {  // long enough that this rank asks the store about its peer
      const auto failed = outcome_of([&] {
        communicator.all_reduce(data, ReduceOp::kSum, {.algorithm = "ring", .timeout = 2s});
      });
      is_over.set_value();
      expect(failed.code == ErrorCode::kDeadline && failed.peer == 0, failed.text);
      expect(failed.text.find("timed out after 2.0 s") != std::string::npos, failed.text);
    }
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
}

}  // namespace kolo::test
