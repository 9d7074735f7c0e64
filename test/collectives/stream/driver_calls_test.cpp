// Driver calls of a call on a stream: they make up the host's time to enqueue.
#include <map>
#include <string>
#include <vector>

#include "test/collectives/support/stream_ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

// The driver calls of an all-reduce of two floats: "function count, function count, ".
void expect_calls(const std::string& algorithm, const std::string& expected) {
  run_stream_ranks({}, [&](const StreamRank& rank) {
    std::byte* const memory = rank.upload(std::vector<std::byte>(2 * sizeof(float)));
    CallOptions options;
    options.stream = DeviceStream{rank.stream};
    options.algorithm = algorithm;
    const auto call = [&] {
      rank.communicator.all_reduce({memory, 2, ElementType::kFloat32}, ReduceOp::kSum, options);
    };
    // the first calls also create resources and look up the memory
    for (int i = 0; i < 3; ++i) call();
    rank.synchronize();
    rank.communicator.barrier();
    std::map<std::string, int> calls = rank.driver.all_calls();
    call();
    std::map<std::string, int> asked;
    for (const auto& [function, count] : rank.driver.all_calls()) {
      if (count != calls[function]) asked[function] = count - calls[function];
    }
    std::string text;
    for (const auto& [function, count] : asked)
      text += function + " " + std::to_string(count) + ", ";
    expect(text == expected, text);
    rank.synchronize();
  });
}

}  // namespace

TEST_CASE("the smallest all-reduce makes a known number of driver calls to enqueue") {
  // Two writes and a wait: the first write and the wait are neighbours.
  expect_calls("",
               "capture_of 2, cudaLaunchKernel 1, cudaMemcpyAsync 1, exchange_capture_mode 4, "
               "pointer_attribute 1, pop_context 2, push_context 2, record_event 2, "
               "word_operations 2, ");
}

TEST_CASE("the words of a ring all-reduce go to the driver in three calls instead of six") {
  expect_calls("ring",
               "capture_of 2, cudaLaunchKernel 1, cudaMemcpyAsync 2, exchange_capture_mode 4, "
               "pointer_attribute 1, pop_context 2, push_context 2, record_event 2, "
               "word_operations 3, ");
}

}  // namespace kolo::test
