// A failure belongs to the whole job: a rank that has learned of it in one communicator fails in
// all communicators of the job.
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kType = ElementType::kInt32;

CommunicatorOptions options_over(const std::string& transport) {
  CommunicatorOptions options;
  options.transport = transport;
  options.timeout = 20s;
  return options;
}

void expect_failure(const std::function<void()>& call, const std::string& what,
                    const std::string& cause) {
  const RankOutcome outcome = outcome_of(call);
  const std::string said = outcome.text.empty() ? "nothing" : outcome.text;
  expect(outcome.code == ErrorCode::kAborted && said.find(cause) != std::string::npos,
         what + " said " + said);
}

// A small message from rank 0 to rank 1. As long as there is credit, it needs no other rank.
void pass_word(Communicator& pair) {
  std::int32_t word = 7;
  if (pair.rank() == 0) pair.send({&word, 1, kType}, 1);
  if (pair.rank() == 1) pair.receive({&word, 1, kType}, 0);
}

CallOptions with_persistence() {
  CallOptions call;
  call.is_persistent = true;
  return call;
}

// None of these calls needs a peer to be present.
void expect_no_call_passes(Communicator& pair, const std::string& which, const std::string& cause) {
  std::array<std::int32_t, 3> data{};
  const int other = 1 - pair.rank();
  const auto expect_refused = [&](const std::string& what, const std::function<void()>& call) {
    expect_failure(call, what + " of " + which, cause);
  };
  expect_refused("a send as before", [&] { pair.send({data.data(), 1, kType}, other); });
  expect_refused("an asynchronous send as before", [&] {
    pair.send_async({data.data(), 1, kType}, other).wait();
  });
  expect_refused("another send", [&] { pair.send({data.data(), 3, kType}, other); });
  expect_refused("a message to itself", [&] {
    pair.send_receive({data.data(), 1, kType}, pair.rank(), {data.data() + 1, 1, kType},
                      pair.rank());
  });
  expect_refused("a plan", [&] {
    pair.send_async({data.data(), 1, kType}, other, with_persistence());
  });
  expect_refused("a group of one", [&] { pair.subset(std::array{pair.rank()}); });
  expect_refused("a barrier", [&] { pair.barrier(); });
}

}  // namespace

TEST_CASE("a failure known in one communicator fails all others of the rank at once") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const std::size_t culprit = GENERATE(0U, 1U, 2U);
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, 2, store, options_over(transport));
    Communicator group = world.duplicate();
    Communicator inner = group.duplicate();
    const std::array<Communicator*, 3> all{&world, &group, &inner};
    std::int32_t received = 0;
    std::vector<Work> in_flight, planned;
    for (Communicator* const each : all) {
      for (int time = 0; time < 3; ++time) pass_word(*each);
      if (rank == 0) {
        in_flight.push_back(each->receive_async({&received, 1, kType}, 1));
        planned.push_back(each->send_async({&received, 1, kType}, 1, with_persistence()));
      }
    }
    Communicator apart = world.duplicate();
    for (Communicator* const each : all) {
      if (rank == 1) each->send({&received, 1, kType}, 0);
    }
    apart.barrier();  // data in flight have arrived, if the transport delivers them that early
    if (rank == 1) return;
    all[culprit]->abort("enough");
    const std::string cause = "aborted: enough";
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string which = "communicator " + std::to_string(i);
      expect_failure([&] { planned[i].start(); }, "a start of " + which, cause);
      expect_no_call_passes(*all[i], which, cause);
      expect_failure([&] { in_flight[i].wait(); }, "what was in flight of " + which, cause);
      expect_no_call_passes(*all[i], which, cause);
    }
    expect_no_call_passes(apart, "a sibling", cause);
  });
  CHECK(outcomes[0].text == "");  // rank 1 may learn of the failure before its last call ends
}

TEST_CASE("abort in a group's callback fails all communicators of the rank there") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, 2, store, options_over("inproc"));
    Communicator group = *world.split(0, -rank);
    for (int time = 0; time < 3; ++time) pass_word(world);
    Work work = group.barrier_async();
    RankOutcome inside;
    work.when_done([&](const Error*) {
      if (rank == 1) return;
      std::int32_t word = 0;
      group.abort("enough");
      inside = outcome_of([&] { world.send({&word, 1, kType}, 1); });
    });
    work.wait();
    if (rank == 1) return;
    expect(inside.text.find("rank 1 (") == 0 &&
               inside.text.find("aborted: enough (in a group, whose ranks 0 to 1 are the job's "
                                "ranks 1, 0)") != std::string::npos,
           "in the callback: " + inside.text);
  });
  CHECK(outcomes[0].text == "");  // rank 1 may learn of the failure before its last call ends
}

TEST_CASE("failure() reports an abort without a call, and every later call fails") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, 2, store, options_over("inproc"));
    Communicator group = *world.split(0, -rank);
    for (int time = 0; time < 3; ++time) pass_word(world);
    if (rank == 1) {
      store->get("rank 0 has sent all", Clock::now() + 20s);
      return world.abort("enough");
    }
    expect(!group.failure().has_value(), "all is well");
    store->set("rank 0 has sent all", "");
    const Deadline patience = Clock::now() + 20s;
    while (!group.failure()) expect(Clock::now() < patience, "no failure is heard of");
    const Error heard = *world.failure();
    expect(heard.code() == ErrorCode::kAborted && heard.peer() == 1, "rank 1 aborted");
    expect_no_call_passes(world, "the world", "aborted: enough");
    expect(std::string(world.failure()->what()) == heard.what(), "it stays the same");
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

namespace {

using Making = std::function<void(Communicator& world)>;

// The `named` ranks wait for each other, in different calls; others may wait for them.
void require_named(const std::vector<Making>& makings, const std::vector<int>& named,
                   const std::string& words) {
  const auto size = static_cast<int>(makings.size());
  const auto outcomes = run_threads(size, [&](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, size, store, options_over("inproc"));
    makings[static_cast<std::size_t>(rank)](world);
    world.barrier();
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kMismatch);
    CHECK(std::ranges::find(named, outcome.peer) != named.end());
    for (const int rank : named)
      CHECK_THAT(outcome.text, ContainsSubstring("rank " + std::to_string(rank)));
    CHECK_THAT(outcome.text, ContainsSubstring(words));
  }
}

Making subset_of(std::vector<int> ranks) {
  return [ranks](Communicator& world) { world.subset(ranks); };
}

}  // namespace

TEST_CASE("a split against a duplicate fails before the deadline, and both ranks are named") {
  const Making split = [](Communicator& world) { world.split(0); };
  const Making duplicate = [](Communicator& world) { world.duplicate(); };
  require_named({split, duplicate}, {0, 1},
                "makes a group of ranks 0, 1, but rank 0 called all_gather #0");
}

TEST_CASE("subsets that differ between ranks fail before the deadline, and both ranks are named") {
  require_named({subset_of({0, 1}), subset_of({1, 0})}, {0, 1}, "a group of ranks");
  // Rank 3 takes no part, and waits in a barrier for the others.
  require_named(
      {subset_of({0, 1, 2}), subset_of({0, 1, 2}), subset_of({0, 2}), [](Communicator&) {}}, {0, 2},
      "ranks 0, 1, 2");
}

TEST_CASE(
    "groups that wait for each other in a cycle fail before the deadline, and name all ranks") {
  require_named({subset_of({0, 1}), subset_of({1, 2}), subset_of({2, 0})}, {0, 1, 2},
                "rank 2 makes a group of ranks 2, 0 and waits for rank 0; ");
  // Rank 4 waits for a rank of the cycle, and rank 5 takes no part.
  require_named({subset_of({0, 1}), subset_of({1, 2}), subset_of({2, 3}), subset_of({3, 0}),
                 subset_of({4, 0}), [](Communicator&) {}},
                {0, 1, 2, 3}, "rank 3 makes a group of ranks 3, 0 and waits for rank 0; ");
}

TEST_CASE("a rank may be late for a group, and make another one before") {
  const auto outcomes = run_threads(3, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, 3, store, options_over("inproc"));
    if (rank == 2) store->get("world/1/group/0", Clock::now() + 20s);  // rank 0 has waited long
    if (rank > 0) world.subset(std::array{1, 2});
    if (rank != 1) world.subset(std::array{0, 2});
    world.duplicate();
    world.barrier();
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

TEST_CASE("a failure to make a group fails the communicators it would come from") {
  const auto outcomes = run_threads(2, [](int rank, const std::shared_ptr<Store>& store) {
    Communicator world(rank, 2, store, options_over("inproc"));
    Communicator twin = world.duplicate();
    for (int time = 0; time < 3; ++time) pass_word(world);
    if (rank == 1) {
      store->get("rank 0 has sent all", Clock::now() + 20s);
      return world.abort("enough");
    }
    store->set("rank 0 has sent all", "");
    expect_failure([&] { twin.duplicate(); }, "a duplicate", "aborted: enough");
    expect_no_call_passes(world, "the world", "aborted: enough");
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

}  // namespace kolo::test
