// Groups of ranks: their members, concurrent operations beside each other and their parent,
// lifetime beyond it, and failures, which belong to the whole job.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"
#include "test/transports/store/forwarding_store.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;

// The group's ranks as ranks of the job, in group order.
std::vector<std::int32_t> members_of(Communicator& group, int job_rank) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(group.size()));
  const std::int32_t mine = job_rank;
  group.all_gather(
      {&mine, chunk_count(members.size(), group.size(), group.rank()), ElementType::kInt32},
      members);
  return members;
}

using Members = std::vector<std::int32_t>;

}  // namespace

namespace {

// A store that knows all its keys.
class ListedStore final : public ForwardingStore {
 public:
  void set(std::string_view key, std::string_view value) override {
    {
      const std::lock_guard lock(mutex_);
      keys_.emplace(key);
    }
    ForwardingStore::set(key, value);
  }

  void note(std::string_view, std::string_view) override {}  // of waits that take long

  // Number of keys that have a value.
  std::ptrdiff_t size() {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(keys_, [&](const auto& key) { return try_get(key).has_value(); });
  }

 private:
  std::mutex mutex_;
  std::set<std::string> keys_;
};

}  // namespace

TEST_CASE("the keys of a group are removed from the store with the group") {
  const auto keys_after = [](int groups) {
    const auto store = std::make_shared<ListedStore>();
    std::ptrdiff_t during = 0;
    const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>&) {
      CommunicatorOptions options;
      options.transport = "shm";
      Communicator world(rank, 3, store, options);
      for (int i = 0; i < groups; ++i) world.duplicate().barrier();
      world.barrier();
      if (rank == 0) during = store->size();
      world.barrier();
    });
    for (const RankOutcome& outcome : outcomes) CHECK(outcome.text.empty());
    return std::pair(during, store->size());
  };
  const auto [during, after] = keys_after(1);
  CHECK(keys_after(7) == std::pair(during, after));
  CHECK(after < during);
}

TEST_CASE("split groups the ranks of one color, ordered by their keys") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(5, transport, [](Communicator& world) {
    const int rank = world.rank();
    auto group = world.split(rank % 2, -rank);
    expect(group.has_value(), "every color makes a group");
    const Members wanted = rank % 2 == 0 ? Members{4, 2, 0} : Members{3, 1};
    expect(members_of(*group, rank) == wanted, "members of color " + std::to_string(rank % 2));
    for (int member = 0; member < group->size(); ++member) {
      expect(group->job_rank(member) == wanted[static_cast<std::size_t>(member)], "job_rank");
    }
    expect(world.job_rank(rank) == rank, "job_rank of the job");
    expect(world.name() == "world" && group->name().find("group of") == 0, "names");
    expect(outcome_of([&] { (void)group->job_rank(group->size()); }).is_bug, "no such rank");
    auto alone = world.split(rank == 3 ? 7 : -1);
    expect(alone.has_value() == (rank == 3), "a color below 0 is no group");
    if (alone) expect(members_of(*alone, rank) == Members{3}, "one rank is a group, too");
  });
}

TEST_CASE("a subset is made by its members only, any number of times") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(4, transport, [](Communicator& world) {
    const std::array ranks{3, 1};
    for (int time = 0; time < 3 && world.rank() % 2 == 1; ++time) {
      auto pair = world.subset(ranks);
      expect(members_of(pair, world.rank()) == Members{3, 1}, "subset 3, 1");
    }
    world.barrier();
  });
}

TEST_CASE("groups of groups know their ranks") {
  run_ranks(4, "inproc", [](Communicator& world) {
    auto half = world.split(world.rank() / 2);
    auto single = half->split(half->rank());
    expect(members_of(*single, world.rank()) == Members{world.rank()}, "a group of a group");
    auto twin = half->duplicate();
    expect(members_of(twin, world.rank()) == members_of(*half, world.rank()), "a duplicate");
  });
}

TEST_CASE("a duplicate's operations do not wait for those of its parent") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(2, transport, [](Communicator& world) {
    auto other = world.duplicate();
    std::int32_t a = 1, b = 10;
    // In opposite orders on the two ranks: in one communicator this would be a mismatch.
    const auto first = [&] {
      return world.all_reduce_async({&a, 1, ElementType::kInt32}, ReduceOp::kSum);
    };
    const auto second = [&] {
      return other.all_reduce_async({&b, 1, ElementType::kInt32}, ReduceOp::kSum);
    };
    Work one, two;
    if (world.rank() == 0) {
      one = first();
      two = second();
    } else {
      two = second();
      one = first();
    }
    two.wait();
    one.wait();
    expect(a == 2 && b == 20, "both sums");
  });
}

TEST_CASE("a group outlives its parent and still watches its members") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(2, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    std::optional<Communicator> world(std::in_place, rank, 2, store, options);
    auto group = world->duplicate();
    world->barrier();
    world.reset();
    std::int32_t sum = 1;
    group.all_reduce({&sum, 1, ElementType::kInt32}, ReduceOp::kSum);
    expect(sum == 2, "all_reduce of the group");
  });
  for (const RankOutcome& outcome : outcomes) CHECK(outcome.text == "");
}

TEST_CASE("threads drive several groups of one process at once") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  run_ranks(3, transport, [](Communicator& world) {
    std::vector<Communicator> groups;
    for (int i = 0; i < 3; ++i) groups.push_back(world.duplicate());
    std::vector<std::thread> threads;
    std::array<RankOutcome, 3> outcomes;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      threads.emplace_back([&, i] {
        outcomes[i] = outcome_of([&] {
          for (int time = 0; time < 50; ++time) {
            std::vector<std::int32_t> data(1000 * i + 1, 1);
            groups[i].all_reduce(data);
            expect(data.front() == 3 && data.back() == 3, "a group's sum");
          }
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const RankOutcome& outcome : outcomes) expect(outcome.text.empty(), outcome.text);
  });
}

TEST_CASE("a failure in a group fails the whole job, and names the job's ranks") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto outcomes = run_threads(3, [&](int rank, const std::shared_ptr<Store>& store) {
    CommunicatorOptions options;
    options.transport = transport;
    options.timeout = 20s;
    Communicator world(rank, 3, store, options);
    auto group = world.split(rank == 0 ? 0 : 1);
    std::int32_t data = 0;
    if (rank == 1) group->barrier();
    if (rank == 2) group->broadcast({&data, 1, ElementType::kInt32}, 0);
    world.barrier();
  });
  for (const RankOutcome& outcome : outcomes) {
    INFO(outcome.text);
    CHECK(outcome.code == ErrorCode::kMismatch);
    CHECK((outcome.peer == 1 || outcome.peer == 2));  // a rank of the job, not of the group
    CHECK(outcome.peer == outcomes[0].peer);
    CHECK_THAT(outcome.text, ContainsSubstring("broadcast #0") &&
                                 ContainsSubstring("whose ranks 0 to 1 are the job's ranks 1, 2"));
  }
}

TEST_CASE("an invalid subset is refused") {
  run_ranks(2, "inproc", [](Communicator& world) {
    const auto said = [&](std::vector<int> ranks) {
      return outcome_of([&] { world.subset(ranks); }).text;
    };
    const int mine = world.rank();
    expect(said({mine, mine}).find("named twice") != std::string::npos, said({mine, mine}));
    expect(said({1 - mine}).find("not in") != std::string::npos, said({1 - mine}));
    expect(said({mine, 2}).find("0 to 1") != std::string::npos, said({mine, 2}));
    expect(said({}).find("empty list") != std::string::npos, said({}));
  });
}

}  // namespace kolo::test
