// Driver calls of a call on a stream, which make up the host's time to enqueue, and the bytes that
// its kernels and copies move.
#include <cstring>
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

TEST_CASE("two ranks sum long data with 4 n bytes on one device, and with 5 n on two") {
  constexpr std::size_t kCount = 700'001;  // a half is longer than a slot
  constexpr std::size_t kBytes = kCount * sizeof(float);
  for (const int devices : {1, 2}) {
    for (const bool is_in_place : {false, true}) {
      StreamJob job;
      job.devices = devices;
      run_stream_ranks(job, [&](const StreamRank& rank) {
        const std::vector<float> numbers(kCount, static_cast<float>(1 + rank.communicator.rank()));
        std::vector<std::byte> bytes(kBytes);
        std::memcpy(bytes.data(), numbers.data(), kBytes);
        std::byte* const in = rank.upload(bytes);
        std::byte* const out = is_in_place ? in : rank.upload(std::vector<std::byte>(kBytes));
        CallOptions options;
        options.stream = DeviceStream{rank.stream};
        options.algorithm = "ring";
        rank.communicator.all_reduce({in, kCount, ElementType::kFloat32},
                                     {out, kCount, ElementType::kFloat32}, ReduceOp::kSum, options);
        rank.synchronize();
        std::vector<float> sums(kCount);
        std::memcpy(sums.data(), out, kBytes);
        expect(sums == std::vector<float>(kCount, 3), "a wrong sum");
        const std::size_t half = chunk_count(kCount, 2, rank.communicator.rank()) * sizeof(float);
        const FakeDriver::Moved moved = rank.driver.moved();
        const std::size_t copied = devices == 1 ? 0 : kBytes - half;
        const std::size_t twice = devices == 1 ? half : 0;
        expect(moved.read == 2 * half + copied, "read " + std::to_string(moved.read));
        expect(moved.written == half + twice + copied, "written " + std::to_string(moved.written));
        rank.communicator.barrier();
      });
    }
  }
}

}  // namespace kolo::test
