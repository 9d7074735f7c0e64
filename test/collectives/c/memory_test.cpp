// The caller's memory for partial results: kolo_options.allocate and deallocate.
#include <barrier>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/collectives/c/ranks.h"
#include "test/support/catch.h"

namespace {

using namespace kolo::test;

constexpr int kRanks = 8;

// Memory of one rank. Only its own thread uses it.
struct Memory {
  std::size_t held = 0;  // bytes
  int calls = 0;
  bool is_empty = false;
};

void* take(void* context, size_t bytes, size_t alignment) {
  auto& memory = *static_cast<Memory*>(context);
  ++memory.calls;
  if (memory.is_empty) return nullptr;
  memory.held += bytes;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void give(void* context, void* block, size_t bytes, size_t) {
  static_cast<Memory*>(context)->held -= bytes;
  std::free(block);
}

// Runs `body` on all ranks, each with a memory, once all of them have a communicator: see ranks.h.
using Body = void (*)(kolo_communicator* world, Memory& memory);
std::vector<std::string> run_with_memories(std::vector<Memory>& memories, Body body) {
  kolo_job_store* store = nullptr;
  expect_ok(kolo_store_local(&store));
  std::barrier all_made(kRanks);
  auto thrown = run_c_threads(kRanks, [&](int rank) {
    Memory& memory = memories[static_cast<std::size_t>(rank)];
    kolo_options options = {};
    options.size = sizeof options;
    options.transport = "shm";
    options.allocate = take;
    options.deallocate = give;
    options.memory_context = &memory;
    kolo_communicator* world = nullptr;
    const kolo_result made = kolo_create(&options, rank, kRanks, store, &world);
    all_made.arrive_and_wait();
    expect_ok(made, "kolo_create");
    body(world, memory);
    kolo_free(world);
  });
  kolo_store_free(store);
  return thrown;
}

// A reduction in which rank 4 sums outside of the caller's buffers.
kolo_result reduce(kolo_communicator* world, std::vector<float>& out) {
  const std::vector<float> in(100'000, 1.0f);
  kolo_call call = {};
  call.size = sizeof call;
  call.algorithm = "binomial_tree";
  out.assign(kolo_rank(world) == 0 ? in.size() : 0, 0.0f);
  return kolo_reduce(world, in.data(), out.data(), in.size(), KOLO_FLOAT32, KOLO_SUM, 0, &call,
                     nullptr);
}

}  // namespace

TEST_CASE("C interface: partial results take the caller's memory, and give it back") {
  std::vector<Memory> memories(kRanks);
  CHECK(run_with_memories(memories, [](kolo_communicator* world, Memory&) {
          std::vector<float> out;
          for (int i = 0; i < 2; ++i) expect_ok(reduce(world, out));
          for (const float one : out) expect(one == float{kRanks}, "another sum");
        }) == none(kRanks));
  CHECK(memories[4].calls > 0);
  for (const Memory& memory : memories) CHECK(memory.held == 0);
}

TEST_CASE("C interface: an operation without the caller's memory fails as such on all ranks") {
  std::vector<Memory> memories(kRanks);
  for (Memory& memory : memories) memory.is_empty = true;
  CHECK(run_with_memories(memories, [](kolo_communicator* world, Memory&) {
          std::vector<float> out;
          kolo_result result = reduce(world, out);
          if (result == KOLO_OK) result = kolo_barrier(world, nullptr, nullptr);  // it only sent
          expect(result == KOLO_ERROR_OUT_OF_MEMORY, failure_of(world));
        }) == none(kRanks));
}

TEST_CASE("C interface: one function for memory without the other is refused") {
  kolo_job_store* store = nullptr;
  REQUIRE(kolo_store_local(&store) == KOLO_OK);
  kolo_options options = {};
  options.size = sizeof options;
  options.allocate = take;
  kolo_communicator* world = nullptr;
  CHECK(kolo_create(&options, 0, 1, store, &world) == KOLO_ERROR_INVALID_ARGUMENT);
  CHECK(failure_of() == "kolo_options has one of allocate and deallocate: give both, or none");
  kolo_store_free(store);
}
