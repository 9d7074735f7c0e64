// Out of memory, as a failure of its own: not unreadable data, and not an aborted job. This program
// replaces the allocator, so that a test can make it fail.
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "collectives/planner/costs_text.h"
#include "collectives/planner/tuning.h"
#include "test/collectives/c/ranks.h"
#include "test/support/catch.h"
#include "transports/base/topology.h"

namespace {

// Allocations until one fails; those after it succeed, as when only a large one has no room. Below
// 0: none fails.
thread_local int allocations_left = -1;

}  // namespace

void* operator new(std::size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*says null*/) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

namespace kolo::test {
namespace {

// Repeats the read and lets another allocation fail each time, until none fails. Every earlier read
// must throw std::bad_alloc. Returns the number of failures.
int times_without_memory(const std::function<void()>& read) {
  for (int times = 0;; ++times) {
    allocations_left = times;
    try {
      read();
    } catch (const std::bad_alloc&) {
      continue;
    }
    const bool has_failed = std::exchange(allocations_left, -1) < 0;
    if (!has_failed) return times;
    FAIL("it has been read all the same, or a part of it");
  }
}

}  // namespace

TEST_CASE("a rank without memory does not report published data as unreadable") {
  const std::string machine(100, 'm');
  const std::vector<std::string> places = {machine + "\n" + machine + "1\n0 1\n1.5\nred\n\n",
                                           machine + "\n" + machine + "2\n2 3\n-\nblue\n\n"};
  CHECK(times_without_memory([&] { topology_from(places, 0); }) > 0);
  const std::string costs = to_text(Costs{});
  CHECK(times_without_memory([&] { costs_from(costs); }) > 0);
  const std::string table = "all_reduce 3 inproc 1024 double_tree\n";
  CHECK(times_without_memory([&] { TuningTable::parse(table, "a table"); }) > 0);
}

namespace {

// One all_reduce of two ranks. On rank 1 the allocation after `left` others fails. False: it needed
// no more than these.
bool reduce_with_memory_for(int left) {
  bool has_failed = false;
  const auto thrown = run_c_ranks(2, "inproc", [&](kolo_communicator* world) {
    const int rank = kolo_rank(world);
    kolo_call call = {};
    call.size = sizeof call;
    call.algorithm = "ring";  // needs no planner
    std::vector<std::int32_t> data(5000, 1);
    const auto reduce = [&](std::size_t count) {
      return kolo_all_reduce(world, data.data(), data.data(), count, KOLO_INT32, KOLO_SUM, &call,
                             nullptr);
    };
    expect_ok(reduce(1));  // connects
    if (rank == 1) allocations_left = left;
    const kolo_result result = reduce(data.size());
    if (rank == 0) return;
    has_failed = std::exchange(allocations_left, -1) < 0;
    const std::string text = failure_of(world);
    if (has_failed) kolo_abort(world, "the test ends");
    expect(result == KOLO_OK || (has_failed && result == KOLO_ERROR_OUT_OF_MEMORY), text);
  });
  CHECK(thrown == none(2));
  return has_failed;
}

}  // namespace

TEST_CASE("an operation without memory fails as such, with the rank that ran out") {
  // The number differs a little from run to run: a rank that waits for long allocates more.
  for (int left = 0; reduce_with_memory_for(left); ++left) {
  }
}

}  // namespace kolo::test
