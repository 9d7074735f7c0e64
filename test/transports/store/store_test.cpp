// Contract of all stores, over the table of stores.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <limits>
#include <thread>

#include "test/support/catch.h"
#include "test/transports/store/forwarding_store.h"
#include "test/transports/store/store_table.h"
#include "test/transports/support/forked_child.h"
#include "transports/error.h"
#include "transports/store/all_gather.h"

using namespace kolo;
using namespace kolo::test;

namespace {

// Runs `body` for every store of the table, as sections by name.
template <typename Body>
void for_each_store(Body body) {
  for (const StoreRow& row : store_table()) {
    DYNAMIC_SECTION(row.name) {
      const auto job = row.make();
      body(row, *job);
    }
  }
}

template <typename Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return Error(ErrorCode::kSystem, kNoPeer, "");
}

}  // namespace

TEST_CASE("a rank gets the value that another rank set") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    CHECK_FALSE(b->try_get("key"));
    a->set("key", "value");
    CHECK(b->get("key", in_seconds(20)) == "value");
    a->set("key", "");
    CHECK(b->try_get("key") == std::optional<std::string>(""));
    const std::string large(1 << 20, 'x');
    a->set("large", large);
    CHECK(b->get("large", in_seconds(20)) == large);
    CHECK_THROWS_AS(a->set("large", large + "x"), std::invalid_argument);
    CHECK_THROWS_WITH(a->set("large", large + "x"),
                      ContainsSubstring("the value of 'large' has 1048577 bytes, 1048576 at most"));
  });
}

TEST_CASE("the answer to a query includes an earlier note, while the rank polls failure()") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = prefixed(job.open(), "b/");
    a->note("b/key", "old");
    a->note("b/key", "new");
    const auto noted = a->ask("b/key");
    REQUIRE(wait_for_answers(*a, {&noted, 1}, in_seconds(20)));
    CHECK(noted->value == "new");
    const std::vector<std::shared_ptr<const Store::Answer>> answers = {b->ask("key"),
                                                                       b->ask("none")};
    REQUIRE(wait_for_answers(*b, answers, in_seconds(20)));
    CHECK(answers[0]->value == "new");
    CHECK_FALSE(answers[1]->value);
    b->note("mine", "yes");
    CHECK(a->get("b/mine", in_seconds(20)) == "yes");
  });
}

TEST_CASE("a get waits for the key") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    std::string got;
    std::thread waiter([&] { got = b->get("late", in_seconds(20)); });
    a->set("other", "1");
    a->set("late", "2");
    waiter.join();
    CHECK(got == "2");
  });
}

// As after a suspension of all ranks, while one of them waits or is about to.
TEST_CASE("a get whose deadline passed long ago gives the others their time anew") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    std::string got;
    std::thread waiter([&] { got = b->get("late", in_seconds(-2)); });
    a->set("late", "value");
    waiter.join();
    CHECK(got == "value");
    CHECK_THROWS_AS(b->get("never", in_seconds(-0.01)), Error);
  });
}

TEST_CASE("counters add up over ranks and threads") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([store = i % 2 == 0 ? a : b] {
        for (int n = 0; n < 50; ++n) store->add("counter", 2);
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(a->add("counter", -1) == 399);
  });
}

TEST_CASE("a counter that overflows wraps around") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto store = job.open();
    using Limits = std::numeric_limits<std::int64_t>;
    CHECK(store->add("counter", Limits::max()) == Limits::max());
    CHECK(store->add("counter", 2) == Limits::min() + 1);
    CHECK(store->add("counter", -2) == Limits::max());
  });
}

TEST_CASE("several threads wait on one store at once") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    std::vector<std::string> got(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < got.size(); ++i) {
      threads.emplace_back([&, i] { got[i] = b->get("key" + std::to_string(i), in_seconds(20)); });
    }
    for (std::size_t i = got.size(); i-- > 0;) a->set("key" + std::to_string(i), std::to_string(i));
    for (auto& thread : threads) thread.join();
    CHECK(got == std::vector<std::string>{"0", "1", "2", "3"});
  });
}

TEST_CASE("the error of a get that times out names the key, the store and the time") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto store = job.open();
    const Error error = error_of([&] { store->get("never", in_seconds(0.05)); });
    CHECK(error.code() == ErrorCode::kDeadline);
    CHECK_THAT(error.what(), ContainsSubstring("'never'") && ContainsSubstring("waited ") &&
                                 ContainsSubstring(store->describe()));
  });
}

TEST_CASE("the first failure wins and ends every wait") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    CHECK_FALSE(a->failure());
    std::string thrown;
    std::thread waiter([&] { thrown = error_of([&] { b->get("never", in_seconds(20)); }).what(); });
    CHECK(a->post_failure("rank 1: the first") == "rank 1: the first");
    waiter.join();
    CHECK(thrown == "rank 1: the first");
    CHECK(b->post_failure("rank 2: the second") == "rank 1: the first");
    CHECK(b->failure() == std::optional<std::string>("rank 1: the first"));
    CHECK(job.open()->post_failure("a third") == "rank 1: the first");
  });
}

TEST_CASE("a posted failure makes the store's descriptor readable") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    if (b->descriptor() < 0) return;
    std::thread poster([&] { a->post_failure("over"); });
    pollfd watched{b->descriptor(), POLLIN, 0};
    CHECK(::poll(&watched, 1, 20000) == 1);
    poster.join();
    CHECK(b->failure() == std::optional<std::string>("over"));
  });
}

TEST_CASE("a rank that ends without leave() fails the job, and a rank that leaves does not") {
  for_each_store([](const StoreRow& row, StoreJob& job) {
    if (!row.sees_death) return;
    const auto a = job.open();
    auto b = job.open();
    auto c = job.open();
    a->join(0);
    b->join(1);
    c->join(2);
    b->leave();
    b.reset();
    a->set("after b", "");
    CHECK_FALSE(a->failure());
    c.reset();
    const Error error = error_of([&] { a->get("never", in_seconds(20)); });
    CHECK(error.code() == ErrorCode::kAborted);
    CHECK_THAT(error.what(), ContainsSubstring("rank 2 (") && ContainsSubstring("pid ") &&
                                 ContainsSubstring("is gone"));
  });
}

TEST_CASE("a rank's death is seen though a forked child of it lives on") {
  for_each_store([](const StoreRow& row, StoreJob& job) {
    if (!row.sees_death) return;
    const auto a = job.open();
    auto b = job.open();
    a->join(0);
    b->join(1);
    const ForkedChild child;
    b.reset();
    CHECK_THAT(error_of([&] { a->get("never", in_seconds(20)); }).what(),
               ContainsSubstring("rank 1 (") && ContainsSubstring("is gone"));
  });
}

TEST_CASE("a rank that joined twice must leave twice") {
  for_each_store([](const StoreRow& row, StoreJob& job) {
    if (!row.sees_death) return;
    const auto a = job.open();
    auto b = job.open();
    b->join(1);
    b->join(1);
    b->leave();
    b.reset();
    CHECK_THAT(error_of([&] { a->get("never", in_seconds(20)); }).what(),
               ContainsSubstring("rank 1 ("));
  });
}

TEST_CASE("a newcomer that is refused gets an error, and the others do not") {
  for_each_store([](const StoreRow& row, StoreJob& job) {
    if (!row.sees_death) return;
    const auto a = job.open();
    const auto b = job.open();
    a->join(0, "world", 2);
    b->join(1, "world", 2);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto newcomer = job.open();
      const Error error = error_of([&] { newcomer->join(1, "world", 2); });
      const bool is_named = error.code() == ErrorCode::kUnavailable &&
                            newcomer->failure() == error.what() &&
                            newcomer->post_failure("over") == error.what();
      ::_exit(is_named ? 7 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
    a->set("after", "");
    CHECK_FALSE(a->failure());
    CHECK_FALSE(b->failure());
    a->leave();
    b->leave();
  });
}

TEST_CASE("the keys of a prefix are removed once all its users have retired it") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto a = job.open();
    const auto b = job.open();
    const auto group = prefixed(a, "group/1/");
    group->set("key", "value");
    group->add("counter", 5);
    a->set("group/10/key", "of another");
    group->retire("", 2);
    CHECK(b->get("group/1/key", in_seconds(20)) == "value");
    b->retire("group/1/", 2);
    const auto removed = b->ask("group/1/key");  // after the call, which does not wait
    REQUIRE(wait_for_answers(*b, {&removed, 1}, in_seconds(20)));
    CHECK_FALSE(removed->value);
    CHECK_FALSE(a->try_get("group/1/key"));
    CHECK(a->add("group/1/counter", 1) == 1);
    CHECK(a->try_get("group/10/key") == "of another");
  });
}

TEST_CASE("prefixes separate keys and share failures") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto store = job.open();
    const auto one = prefixed(store, "one/");
    const auto two = prefixed(store, "two/");
    one->set("key", "1");
    CHECK_FALSE(two->try_get("key"));
    CHECK(store->try_get("one/key") == std::optional<std::string>("1"));
    one->add("counter", 1);
    CHECK(two->add("counter", 1) == 1);
    one->post_failure("over");
    CHECK(two->failure() == std::optional<std::string>("over"));
  });
}

TEST_CASE("the error of an exchange names the missing ranks") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto store = job.open();
    store->set("here/0", "zero");
    const Error error =
        error_of([&] { exchange(*store, 1, 4, "here", "one", in_seconds(0.3), "join the job"); });
    CHECK(error.code() == ErrorCode::kDeadline);
    CHECK(error.peer() == 2);
    CHECK_THAT(error.what(), ContainsSubstring("rank 1: waited ") &&
                                 ContainsSubstring(" s for ranks 2, 3 of 4 to join the job (" +
                                                   store->describe()));
  });
}

TEST_CASE("the error of an exchange of far too many ranks says that it checked only some of them") {
  for_each_store([](const StoreRow&, StoreJob& job) {
    const auto store = job.open();
    constexpr int kTypo = 2'000'000'000;
    const Error error = error_of(
        [&] { exchange(*store, 1, kTypo, "here", "one", in_seconds(0.3), "join the job"); });
    CHECK(error.code() == ErrorCode::kDeadline);
    CHECK(error.peer() == 0);
    CHECK_THAT(error.what(), ContainsSubstring(" s for ranks 0, 2, 3, 4, 5, 6, 7, 8 and 1015 more, "
                                               "at least, of 2000000000 to join the job ("));
  });
}

TEST_CASE("an exchange gives every rank every text") {
  const int size = GENERATE(3, 20);
  for_each_store([size](const StoreRow&, StoreJob& job) {
    std::vector<std::vector<std::string>> got(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        const auto store = job.open();
        got[static_cast<std::size_t>(rank)] =
            exchange(*store, rank, size, "text", std::string(static_cast<std::size_t>(rank), 'r'),
                     in_seconds(20), "meet");
      });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& texts : got) {
      REQUIRE(std::ssize(texts) == size);
      for (std::size_t i = 0; i < texts.size(); ++i) CHECK(texts[i] == std::string(i, 'r'));
    }
  });
}

TEST_CASE("an exchange of many ranks waits for no reply of its own for each of them") {
  class CountingStore final : public ForwardingStore {
   public:
    std::string get(std::string_view key, Deadline deadline) override {
      ++gets;
      return ForwardingStore::get(key, deadline);
    }
    int gets = 0;
  };
  CountingStore store;
  constexpr int kSize = 256;
  for (int rank = 1; rank < kSize; ++rank) store.set("text/" + std::to_string(rank), "value");
  const auto texts = exchange(store, 0, kSize, "text", "mine", in_seconds(20), "meet");
  CHECK(std::ssize(texts) == kSize);
  CHECK(store.gets == 0);
}
