// kolo_free() while calls of other threads, or callbacks, are running.
#include <atomic>
#include <thread>

#include "test/collectives/c/ranks.h"
#include "test/collectives/c/table_store.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

// A thread may be between two calls. Then the operation in flight fails as one of any freed
// communicator.
bool says_freed(const std::string& text) {
  return text.find("the communicator was freed during this call") != std::string::npos ||
         text.find("its communicator was destroyed with message") != std::string::npos;
}

// Result and text of a call in a thread of its own.
struct Outcome {
  kolo_result result = KOLO_OK;
  std::string text;

  void take(kolo_result given) {
    result = given;
    text = kolo_last_failure(nullptr).text;
  }
  void expect_freed() const {
    expect(result == KOLO_ERROR_ABORTED && says_freed(text),
           std::string(kolo_result_name(result)) + ": " + text);
  }
};

// Rank 0 frees `world` while its other thread is inside `call`. Rank 1 knows that the thread is
// there from a message that the call sends.
void free_during(const std::function<kolo_result(kolo_communicator* world)>& call) {
  std::atomic<bool> is_inside = false;
  kolo_job_store* store = nullptr;
  expect_ok(kolo_store_local(&store));
  const auto thrown = run_c_threads(2, [&](int rank) {
    kolo_communicator* world = nullptr;
    expect_ok(kolo_create(nullptr, rank, 2, store, &world));
    if (rank == 1) {
      std::int32_t value = 0;
      expect_ok(kolo_receive(world, &value, 1, KOLO_INT32, 0, nullptr, nullptr));
      is_inside = true;
      is_inside.notify_all();
      Outcome peer;
      peer.take(kolo_receive(world, &value, 1, KOLO_INT32, 0, nullptr, nullptr));
      peer.expect_freed();
      kolo_free(world);
      return;
    }
    Outcome outcome;
    std::thread other([&] { outcome.take(call(world)); });
    is_inside.wait(false);
    kolo_free(world);
    other.join();
    outcome.expect_freed();
  });
  kolo_store_free(store);
  CHECK(thrown == none(2));
}

}  // namespace

TEST_CASE("C interface: freeing a communicator fails a blocking call of another thread") {
  free_during([](kolo_communicator* world) {
    std::int32_t sent = 1, received = 0;
    return kolo_send_receive(world, &sent, 1, 1, &received, 1, 1, KOLO_INT32, nullptr);
  });
}

TEST_CASE("C interface: freeing a communicator fails a wait of another thread") {
  free_during([](kolo_communicator* world) {
    std::int32_t sent = 1, received = 0;
    kolo_work* work = nullptr;
    expect_ok(kolo_receive(world, &received, 1, KOLO_INT32, 1, nullptr, &work));
    kolo_send(world, &sent, 1, KOLO_INT32, 1, nullptr, nullptr);  // may fail, as the wait does
    const kolo_result first = kolo_wait(work);
    int is_done = 0;
    expect_ok(kolo_test(work, &is_done));
    expect(is_done == 1 && kolo_wait(work) == first, "the work has not ended");
    kolo_work_free(work);
    return first;
  });
}

TEST_CASE("C interface: freeing a communicator ends a poll loop of another thread") {
  free_during([](kolo_communicator* world) {
    std::int32_t sent = 1, received = 0;
    kolo_work* work = nullptr;
    expect_ok(kolo_receive(world, &received, 1, KOLO_INT32, 1, nullptr, &work));
    kolo_send(world, &sent, 1, KOLO_INT32, 1, nullptr, nullptr);  // may fail, as the wait does
    for (int is_done = 0; is_done == 0;) expect_ok(kolo_test(work, &is_done));
    const kolo_result result = kolo_wait(work);
    kolo_work_free(work);
    return result;
  });
}

TEST_CASE("C interface: freeing a communicator fails a thread that makes a group") {
  // The store of rank 0 tells when the group's ranks are counted: the call has begun.
  struct Watched {
    Table& table;
    std::atomic<bool> is_watched = false;
    std::atomic<bool> is_inside = false;
  };
  Table table;
  Watched watched{table};
  CHECK(run_c_threads(2, [&](int rank) {
          auto functions = functions_of(table);
          if (rank == 0) {
            functions.context = &watched;
            functions.free = nullptr;
            functions.set = [](void* context, auto... rest) {
              return set_value(&static_cast<Watched*>(context)->table, rest...);
            };
            functions.get = [](void* context, auto... rest) {
              return get_value(&static_cast<Watched*>(context)->table, rest...);
            };
            functions.add = [](void* context, auto... rest) {
              auto& to = *static_cast<Watched*>(context);
              if (to.is_watched) to.is_inside = true;
              if (to.is_watched) to.is_inside.notify_all();
              return add_value(&to.table, rest...);
            };
          }
          kolo_job_store* store = nullptr;
          expect_ok(kolo_store_from_functions(&functions, &store));
          kolo_communicator* world = nullptr;
          const kolo_result made = kolo_create(nullptr, rank, 2, store, &world);
          kolo_store_free(store);
          expect_ok(made, "kolo_create");
          Outcome outcome;
          if (rank == 1) {
            std::int32_t value = 0;
            outcome.take(kolo_receive(world, &value, 1, KOLO_INT32, 0, nullptr, nullptr));
          } else {
            watched.is_watched = true;
            std::thread other([&] {
              const int both[] = {0, 1};
              kolo_communicator* group = nullptr;
              outcome.take(kolo_subset(world, both, 2, &group));
            });
            watched.is_inside.wait(false);
            kolo_free(world);
            other.join();
          }
          outcome.expect_freed();
          if (rank == 1) kolo_free(world);
        }) == none(2));
}

TEST_CASE("C interface: a callback may free the communicator of the call that runs it") {
  struct Freed {
    kolo_communicator* world;
    kolo_work* work;
    std::atomic<int> calls = 0;
  };
  const bool has_thread = GENERATE(false, true);
  kolo_job_store* store = nullptr;
  REQUIRE(kolo_store_local(&store) == KOLO_OK);
  CHECK(run_c_threads(2, [&](int rank) {
          kolo_options options = {};
          options.size = sizeof options;
          options.progress_thread = has_thread ? 1 : 0;
          kolo_communicator* world = nullptr;
          expect_ok(kolo_create(&options, rank, 2, store, &world));
          std::int32_t value = 1;
          kolo_work* work = nullptr;
          expect_ok(
              kolo_all_reduce(world, &value, &value, 1, KOLO_INT32, KOLO_SUM, nullptr, &work));
          Freed freed{world, work};
          const auto free_all = [](void* context, const kolo_failure* failure) {
            auto& all = *static_cast<Freed*>(context);
            kolo_free(all.world);
            int is_done = 0;
            if (failure == nullptr && kolo_test(all.work, &is_done) == KOLO_OK && is_done == 1)
              ++all.calls;
            all.calls.notify_all();
          };
          expect_ok(kolo_when_done(work, free_all, &freed));
          expect_ok(kolo_wait(work));
          freed.calls.wait(0);  // the progress thread may call later
          expect(value == 2, "another sum");
          kolo_work_free(work);
        }) == none(2));
  kolo_store_free(store);
}

}  // namespace kolo::test
