// Arguments that the C interface refuses: lengths that overflow, operations of another type.
#include <cstdint>
#include <limits>
#include <string>

#include "collectives/c/kolo_servers.h"
#include "collectives/c/kolo_statistics.h"
#include "test/collectives/c/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr size_t kMost = std::numeric_limits<size_t>::max();
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

void refused(kolo_result result, const std::string& part) {
  const std::string text = failure_of();
  expect(result == KOLO_ERROR_INVALID_ARGUMENT,
         std::string(kolo_result_name(result)) + ": " + text);
  expect(text.find(part) != std::string::npos, text);
}

}  // namespace

TEST_CASE("C interface: a prediction refuses what the operation refuses") {
  CHECK(run_c_ranks(2, "shm", [](kolo_communicator* world) {
          kolo_prediction predicted[1] = {};
          size_t count = 0;
          const auto predict = [&](kolo_collective collective, size_t bytes, kolo_type type,
                                   kolo_op op) {
            return kolo_predict(world, collective, bytes, type, op, predicted, 1, &count);
          };
          for (const size_t bytes : {kMost, kMost - 4, kMost / 2, size_t{1} << 63})
            refused(predict(KOLO_COLLECTIVE_ALL_REDUCE, bytes, KOLO_FLOAT32, KOLO_SUM),
                    "more than memory can hold");
          refused(predict(KOLO_COLLECTIVE_BROADCAST, kMost, KOLO_UINT8, KOLO_SUM),
                  "more than memory can hold");
          refused(predict(KOLO_COLLECTIVE_ALL_REDUCE, 64, KOLO_FLOAT32, KOLO_BIT_AND),
                  "all_reduce: bit_and is not defined for float32; it is for integers");
          refused(predict(KOLO_COLLECTIVE_REDUCE, 64, KOLO_INT32, KOLO_SCALED_SUM),
                  "it is for floats");
          refused(predict(KOLO_COLLECTIVE_SCAN, 64, KOLO_FLOAT32, KOLO_AVERAGE), "average");
          refused(predict(KOLO_COLLECTIVE_ALL_REDUCE, 64, KOLO_FLOAT32, KOLO_USER), "kolo_op");
          expect_ok(predict(KOLO_COLLECTIVE_ALL_REDUCE, 0, KOLO_INT8, KOLO_BIT_XOR));
          expect_ok(predict(KOLO_COLLECTIVE_ALL_REDUCE, 5, KOLO_FLOAT32, KOLO_SUM));
          expect_ok(predict(KOLO_COLLECTIVE_BARRIER, 0, KOLO_INT8, KOLO_SUM));
        }) == none(2));
}

TEST_CASE("C interface: lengths that overflow are refused before anything is sent") {
  CHECK(run_c_ranks(2, "shm", [](kolo_communicator* world) {
          const int rank = kolo_rank(world);
          std::uint32_t a[4] = {}, b[4] = {};
          const std::string too_long = "more than memory can hold";
          for (const size_t count : {kMost, kMost / 4 + 2}) {
            refused(kolo_all_reduce(world, a, b, count, KOLO_UINT32, KOLO_SUM, nullptr, nullptr),
                    too_long);
            refused(kolo_gather(world, a, b, count, KOLO_UINT32, 0, nullptr, nullptr), too_long);
            refused(kolo_all_to_all(world, a, b, count & ~size_t{1}, KOLO_UINT32, nullptr, nullptr),
                    too_long);
            refused(kolo_send(world, a, count, KOLO_UINT32, 1 - rank, nullptr, nullptr), too_long);
            refused(
                kolo_send_receive(world, a, 1, 1 - rank, b, count, 1 - rank, KOLO_UINT32, nullptr),
                too_long);
            // Their sum is 2 and 0.
            const size_t counts[] = {count, kMost - count + 1 + (count == kMost ? 1 : 0)};
            refused(kolo_all_gather_v(world, a, b, counts, KOLO_UINT32, nullptr, nullptr),
                    too_long);
            refused(
                kolo_reduce_scatter_v(world, a, b, counts, KOLO_UINT32, KOLO_SUM, nullptr, nullptr),
                too_long);
            refused(kolo_gather_v(world, a, count, b, counts, KOLO_UINT32, 0, nullptr, nullptr),
                    too_long);
            refused(kolo_scatter_v(world, a, counts, b, count, KOLO_UINT32, 0, nullptr, nullptr),
                    too_long);
            refused(kolo_all_to_all_v(world, a, counts, b, counts, KOLO_UINT32, nullptr, nullptr),
                    too_long);
          }
          sum_ranks(world);
        }) == none(2));
}

TEST_CASE("C interface: parts of servers whose sum overflows are refused") {
  constexpr int kMostParts = std::numeric_limits<int>::max();
  const int servers[] = {0, 1}, parts[] = {kMostParts, kMostParts};
  kolo_server_plan plan = {};
  plan.size = sizeof plan;
  plan.servers = servers;
  plan.server_count = 2;
  plan.parts = parts;
  plan.part_count = 2;
  size_t begin = 0, count = 0;
  refused(kolo_server_share(&plan, 1, 3, 100, &begin, &count), "parts");
}

TEST_CASE("C interface: no length of memory and no timeout overflows") {
  CHECK(run_c_ranks(1, "auto", [](kolo_communicator* world) {
          for (const size_t bytes : {kMost, kMost - 4095, kMost / 2}) {
            void* memory = nullptr;
            const kolo_result result = kolo_allocate(world, bytes, &memory);
            expect(result == KOLO_ERROR_OUT_OF_MEMORY || result == KOLO_ERROR_SYSTEM,
                   std::string(kolo_result_name(result)) + ": " + failure_of());
            expect(memory == nullptr, "memory of that length");
          }
        }) == none(1));
  kolo_store_server* server = nullptr;
  REQUIRE(kolo_serve_store("127.0.0.1", 0, 1, &server) == KOLO_OK);
  kolo_job_store* store = nullptr;
  CHECK(kolo_store_connect("127.0.0.1", kolo_store_server_port(server), kForever, &store) ==
        KOLO_OK);
  kolo_options options = {};
  options.size = sizeof options;
  options.timeout_ms = kForever;
  kolo_communicator* world = nullptr;
  CHECK(kolo_create(&options, 0, 1, store, &world) == KOLO_OK);
  kolo_free(world);
  kolo_store_free(store);
  kolo_store_server_free(server);
}

}  // namespace kolo::test
