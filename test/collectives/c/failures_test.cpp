// Failures of the C interface, and the ways in which its ranks meet.
#include <poll.h>

#include <atomic>
#include <barrier>
#include <cstring>

#include "test/collectives/c/ranks.h"
#include "test/collectives/c/table_store.h"
#include "test/support/catch.h"
#include "test/transports/store/store_table.h"

namespace kolo::test {

TEST_CASE("C interface: ranks meet over the caller's key-value store, which is freed once") {
  Table table;
  CHECK(run_c_threads(3, [&](int rank) {
          const auto functions = functions_of(table);
          kolo_job_store* store = nullptr;
          expect_ok(kolo_store_from_functions(&functions, &store));
          kolo_communicator* world = nullptr;
          const kolo_result made = kolo_create(nullptr, rank, 3, store, &world);
          kolo_store_free(store);
          expect_ok(made, "kolo_create");
          sum_ranks(world);
          kolo_free(world);
        }) == none(3));
  CHECK(table.frees == 3);
}

TEST_CASE("C interface: a failed function of the caller's store names rank, key and call") {
  Table table;
  auto functions = functions_of(table);
  functions.set = [](void*, const char*, const void*, size_t) { return 5; };
  kolo_job_store* store = nullptr;
  REQUIRE(kolo_store_from_functions(&functions, &store) == KOLO_OK);
  kolo_communicator* world = nullptr;
  CHECK(kolo_create(nullptr, 0, 2, store, &world) == KOLO_ERROR_UNAVAILABLE);
  CHECK(world == nullptr);
  CHECK_THAT(failure_of(),
             Catch::Matchers::StartsWith("rank 0: the caller's function set failed with 5 for the "
                                         "key '") &&
                 ContainsSubstring("see why it failed (making the communicator 'world')"));
  kolo_store_free(store);
}

TEST_CASE("C interface: ranks meet by the caller's all-gather") {
  constexpr int kSize = 3;
  std::barrier all_here(kSize);
  std::vector<std::byte> gathered;
  struct Place {
    std::barrier<>& all_here;
    std::vector<std::byte>& gathered;
    int rank;
  };
  const auto gather = [](void* context, const void* mine, size_t bytes, void* all) {
    auto& place = *static_cast<Place*>(context);
    if (place.rank == 0) place.gathered.resize(bytes * kSize);
    place.all_here.arrive_and_wait();
    std::memcpy(place.gathered.data() + bytes * static_cast<size_t>(place.rank), mine, bytes);
    place.all_here.arrive_and_wait();
    std::memcpy(all, place.gathered.data(), place.gathered.size());
    return 0;
  };
  CHECK(run_c_threads(kSize, [&](int rank) {
          Place place{all_here, gathered, rank};
          kolo_communicator* world = nullptr;
          expect_ok(kolo_create_by_all_gather(nullptr, rank, kSize, gather, &place, &world));
          sum_ranks(world);
          kolo_free(world);
        }) == none(kSize));
}

TEST_CASE("C interface: a failed all-gather of the caller ends the bootstrap on its rank") {
  kolo_communicator* world = nullptr;
  const auto gather = [](void*, const void*, size_t, void*) { return 1; };
  CHECK(kolo_create_by_all_gather(nullptr, 1, 2, gather, nullptr, &world) ==
        KOLO_ERROR_UNAVAILABLE);
  CHECK(failure_of() ==
        "rank 1: the caller's function all_gather failed with 1 in kolo_create_by_all_gather(): it "
        "must succeed on every rank; see why it failed");
  const auto nothing = [](void*, const void*, size_t, void*) { return 0; };
  CHECK(kolo_create_by_all_gather(nullptr, 1, 2, nothing, nullptr, &world) ==
        KOLO_ERROR_INVALID_ARGUMENT);
  CHECK_THAT(failure_of(),
             ContainsSubstring("rank 1: the all-gather of the bootstrap did not deliver "
                               "rank 0's bytes"));
}

TEST_CASE("C interface: a job that begins on keys of an earlier job says so") {
  Table table;
  const auto expect_refused = [&](const std::string& part) {
    CHECK(run_c_threads(2, [&](int rank) {
            const auto functions = functions_of(table);
            kolo_job_store* store = nullptr;
            expect_ok(kolo_store_from_functions(&functions, &store));
            kolo_communicator* world = nullptr;
            const kolo_result made = kolo_create(nullptr, rank, 2, store, &world);
            kolo_store_free(store);
            expect(made != KOLO_OK, "made");
            expect(failure_of().find(part) != std::string::npos, failure_of());
            expect(failure_of().find("keys of its own, by a new prefix") != std::string::npos,
                   failure_of());
          }) == none(2));
  };
  table.counters["kolo.members/world/0"] = table.counters["kolo.members/world/1"] = 1;
  table.counters["kolo.members/world"] = 2;  // both were killed
  expect_refused(
      "is taken twice in 'world': another process has joined as this rank, or the "
      "table of the test holds keys of an earlier job");
  table.counters.clear();
  table.counters["kolo.failures"] = 1;
  table.values["kolo.failure"] = "rank 1 (node) aborted: the disk is full [aborted, rank 1]";
  expect_refused("rank 1 (node) aborted: the disk is full (rank ");
}

TEST_CASE("C interface: a timeline that cannot be written names the option") {
  kolo_options options = {};
  options.size = sizeof options;
  options.timeline = "no such folder/steps.json";
  kolo_job_store* store = nullptr;
  REQUIRE(kolo_store_local(&store) == KOLO_OK);
  kolo_communicator* world = nullptr;
  CHECK(kolo_create(&options, 0, 1, store, &world) == KOLO_ERROR_INVALID_ARGUMENT);
  CHECK_THAT(failure_of(), ContainsSubstring("(the option `timeline`) cannot be written: "));
  kolo_store_free(store);
}

TEST_CASE("C interface: ranks meet over a served store and over a file") {
  kolo_store_server* server = nullptr;
  REQUIRE(kolo_serve_store("127.0.0.1", 0, 2, &server) == KOLO_OK);
  const TemporaryFile file;
  for (const bool is_served : {true, false}) {
    CHECK(run_c_threads(2, [&](int rank) {
            kolo_job_store* store = nullptr;
            expect_ok(is_served ? kolo_store_connect("127.0.0.1", kolo_store_server_port(server), 0,
                                                     &store)
                                : kolo_store_open_file(file.path().c_str(), 2, 0, &store));
            kolo_communicator* world = nullptr;
            expect_ok(kolo_create(nullptr, rank, 2, store, &world));
            kolo_store_free(store);
            sum_ranks(world);
            kolo_free(world);
          }) == none(2));
  }
  kolo_store_server_free(server);
}

TEST_CASE("C interface: mistakes are results with a text, and harm no later call") {
  const kolo_call no_size = {};
  CHECK(run_c_ranks(2, "shm", [&](kolo_communicator* world) {
          float value = 1;
          const auto refused = [&](kolo_result result, const std::string& text) {
            expect(result == KOLO_ERROR_INVALID_ARGUMENT, kolo_result_name(result));
            expect(failure_of(world) == text, failure_of(world));
            expect(failure_of() == text, failure_of());
          };
          refused(kolo_all_reduce(world, &value, &value, 1, static_cast<kolo_type>(77), KOLO_SUM,
                                  nullptr, nullptr),
                  "77 is not a kolo_type, such as KOLO_FLOAT32");
          refused(kolo_all_reduce(world, &value, &value, 1, KOLO_FLOAT32, static_cast<kolo_op>(77),
                                  nullptr, nullptr),
                  "77 is not a kolo_op, such as KOLO_SUM");
          refused(
              kolo_all_reduce(world, &value, &value, 1, KOLO_FLOAT32, KOLO_USER, nullptr, nullptr),
              "KOLO_USER needs a function: set kolo_call.user_op");
          refused(
              kolo_all_reduce(world, &value, &value, 1, KOLO_FLOAT32, KOLO_SUM, &no_size, nullptr),
              "kolo_call.size is not set: begin with `kolo_call x = {.size = sizeof x};`");
          kolo_call cut = {};
          cut.size = offsetof(kolo_call, algorithm) + 4;
          refused(kolo_barrier(world, &cut, nullptr),
                  "kolo_call.size is not set: begin with `kolo_call x = {.size = sizeof x};`");
          kolo_work* work = reinterpret_cast<kolo_work*>(world);
          refused(kolo_barrier(world, &cut, &work),
                  "kolo_call.size is not set: begin with `kolo_call x = {.size = sizeof x};`");
          expect(work == nullptr, "the work handle of a refused call is not null");
          refused(kolo_all_gather_v(world, &value, &value, nullptr, KOLO_FLOAT32, nullptr, nullptr),
                  "the list of counts is null: it needs an entry for each rank");
          refused(kolo_abort_for(world, KOLO_OK, 0, "none"),
                  "kolo_abort_for: the result is not one of KOLO_ERROR_PEER_LOST to "
                  "KOLO_ERROR_SYSTEM, or KOLO_ERROR_OUT_OF_MEMORY");
          sum_ranks(world);
        }) == none(2));
  float value = 1;
  CHECK(kolo_all_reduce(nullptr, &value, &value, 1, KOLO_FLOAT32, KOLO_SUM, nullptr, nullptr) ==
        KOLO_ERROR_INVALID_ARGUMENT);
  CHECK(failure_of() == "the communicator is null");
  CHECK(kolo_create(nullptr, 0, 1, nullptr, nullptr) == KOLO_ERROR_INVALID_ARGUMENT);
  CHECK(kolo_wait(nullptr) == KOLO_ERROR_INVALID_ARGUMENT);
  CHECK(kolo_rank(nullptr) == -1);
  CHECK(kolo_chunk_count(10, 0, 0) == 0);
  kolo_free(nullptr);
  kolo_work_free(nullptr);
  kolo_store_free(nullptr);
  kolo_release(nullptr);
}

TEST_CASE("C interface: a failure of one rank reaches all, with the rank that caused it") {
  for (const kolo_result cause : {KOLO_ERROR_SYSTEM, KOLO_ERROR_OUT_OF_MEMORY}) {
    CHECK(run_c_ranks(3, "tcp", [cause](kolo_communicator* world) {
            if (kolo_rank(world) == 1) {
              expect_ok(kolo_abort_for(world, cause, 1, "the disk is full"));
            }
            const kolo_result result = kolo_barrier(world, nullptr, nullptr);
            const kolo_failure failure = kolo_last_failure(world);
            expect(result == cause && failure.peer == 1, failure.text);
            expect(std::string(failure.text).find("the disk is full") != std::string::npos,
                   failure.text);
            expect(kolo_check(world) == cause, "kolo_check knows of no failure");
          }) == none(3));
  }
}

TEST_CASE("C interface: a question of the store that fails once does not fail the job") {
  static std::atomic<int> questions;
  Table table;
  CHECK(run_c_threads(2, [&](int rank) {
          auto functions = functions_of(table);
          functions.get = [](void* context, const char* key, int* found, auto* take, void* taker) {
            if (std::strcmp(key, "kolo.failure") == 0 && questions++ % 2 == 0) return 1;
            return get_value(context, key, found, take, taker);
          };
          kolo_job_store* store = nullptr;
          expect_ok(kolo_store_from_functions(&functions, &store));
          kolo_communicator* world = nullptr;
          const kolo_result made = kolo_create(nullptr, rank, 2, store, &world);
          kolo_store_free(store);
          expect_ok(made, "kolo_create");
          sum_ranks(world);
          expect_ok(kolo_check(world), "kolo_check");
          kolo_free(world);
        }) == none(2));
  CHECK(questions > 0);
}

TEST_CASE("C interface: a failing function of the caller fails its operation on all ranks") {
  CHECK(run_c_ranks(2, "shm", [](kolo_communicator* world) {
          kolo_user_op failing = {};
          failing.size = sizeof failing;
          failing.element_bytes = 4;
          failing.combine = [](void*, void*, const void*, const void*, size_t) { return 3; };
          kolo_call call = {};
          call.size = sizeof call;
          call.user_op = &failing;
          std::int32_t value = 1;
          const kolo_result result =
              kolo_all_reduce(world, &value, &value, 1, KOLO_USER_TYPE, KOLO_USER, &call, nullptr);
          const std::string text = failure_of(world);
          expect(result != KOLO_OK, "the operation did not fail");
          expect(text.find("kolo_user_op.combine failed with 3") != std::string::npos, text);
        }) == none(2));
}

TEST_CASE("C interface: a wait with a limit ends, and the operation goes on") {
  CHECK(run_c_ranks(2, "shm", [](kolo_communicator* world) {
          std::int32_t value = 5;
          if (kolo_rank(world) == 0) {
            kolo_work* work = nullptr;
            expect_ok(kolo_receive(world, &value, 1, KOLO_INT32, 1, nullptr, &work));
            expect(kolo_wait_for(work, 1) == KOLO_ERROR_DEADLINE, "no deadline");
            expect(kolo_last_failure(world).peer == KOLO_NO_PEER, "a peer is named");
            expect_ok(kolo_send(world, &value, 1, KOLO_INT32, 1, nullptr, nullptr));
            expect_ok(kolo_wait(work));
            expect(value == 6, "another value");
            kolo_work_free(work);
          } else {
            expect_ok(kolo_receive(world, &value, 1, KOLO_INT32, 0, nullptr, nullptr));
            ++value;
            expect_ok(kolo_send(world, &value, 1, KOLO_INT32, 0, nullptr, nullptr));
          }
        }) == none(2));
}

TEST_CASE("C interface: the caller's log gets what no function returns") {
  ::setenv("KOLO_SEGMENT_BYTE", "4096", 1);
  std::string lines;
  kolo_options options = {};
  options.size = sizeof options;
  options.log = [](void* context, const char* line) {
    *static_cast<std::string*>(context) += std::string(line) + "\n";
  };
  options.log_context = &lines;
  kolo_job_store* store = nullptr;
  REQUIRE(kolo_store_local(&store) == KOLO_OK);
  kolo_communicator* world = nullptr;
  REQUIRE(kolo_create(&options, 0, 1, store, &world) == KOLO_OK);
  ::unsetenv("KOLO_SEGMENT_BYTE");
  CHECK_THAT(lines, Catch::Matchers::StartsWith("KOLO_SEGMENT_BYTE is not a setting of kolo") &&
                        Catch::Matchers::EndsWith("did you mean KOLO_SEGMENT_BYTES?\n"));
  kolo_free(world);
  kolo_store_free(store);
}

TEST_CASE("C interface: an event loop drives an operation by the descriptor") {
  CHECK(run_c_ranks(2, "tcp", [](kolo_communicator* world) {
          int descriptor = -1;
          expect_ok(kolo_descriptor(world, &descriptor));
          std::int32_t value = 1;
          kolo_work* work = nullptr;
          expect_ok(
              kolo_all_reduce(world, &value, &value, 1, KOLO_INT32, KOLO_SUM, nullptr, &work));
          for (int is_done = 0; is_done == 0;) {
            pollfd watched{descriptor, POLLIN, 0};
            expect(::poll(&watched, 1, 20'000) == 1, "not readable in time");
            expect_ok(kolo_progress(world, nullptr));
            expect_ok(kolo_test(work, &is_done));
          }
          expect(value == 2, "another sum");
          kolo_work_free(work);
        }) == none(2));
}

// Older callers have shorter structs; their missing fields are 0.
TEST_CASE("C interface: a shorter struct of an older version is accepted") {
  CHECK(run_c_ranks(1, "auto", [](kolo_communicator* world) {
          kolo_call call = {};
          call.size = offsetof(kolo_call, is_persistent);
          call.is_persistent = 1;  // beyond the size
          float value = 1;
          expect_ok(
              kolo_all_reduce(world, &value, &value, 1, KOLO_FLOAT32, KOLO_SUM, &call, nullptr));
        }) == none(1));
}

}  // namespace kolo::test
