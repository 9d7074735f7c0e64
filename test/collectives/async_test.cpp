// Operations in flight: several, from several threads, with and without a thread that drives them.
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/collectives/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

constexpr std::size_t kCount = 30'000;

Work sum_async(Communicator& communicator, std::vector<float>& data) {
  return communicator.all_reduce_async(data.data(), data.data(), data.size(), ElementType::kFloat32,
                                       ReduceOp::kSum);
}

std::vector<std::vector<float>> buffers_of(const Communicator& communicator, std::size_t number) {
  std::vector<std::vector<float>> buffers;
  for (std::size_t i = 0; i < number; ++i) {
    buffers.emplace_back(kCount + i, static_cast<float>(communicator.rank() + 1));
  }
  return buffers;
}

void expect_sums(const std::vector<float>& data, int size) {
  const auto sum = static_cast<float>(size * (size + 1) / 2);
  for (const float value : data) expect(value == sum, "a wrong sum: " + std::to_string(value));
}

CommunicatorOptions with_progress_thread(bool has_one) {
  CommunicatorOptions options;
  options.progress_thread = has_one;
  return options;
}

}  // namespace

TEST_CASE("operations in flight end well, whatever the order of waiting") {
  const auto transport = GENERATE(from_range(transports_under_test()));
  const auto has_thread = GENERATE(false, true);
  const auto size = GENERATE(2, 3);
  run_ranks(
      size, transport,
      [&](Communicator& communicator) {
        auto buffers = buffers_of(communicator, 6);
        std::vector<Work> works;
        for (auto& buffer : buffers) works.push_back(sum_async(communicator, buffer));
        works[5].wait();
        for (Work& work : works) expect(work.test(), "an earlier operation is not done");
        for (Work& work : works) work.wait();
        for (const auto& buffer : buffers) expect_sums(buffer, size);
      },
      with_progress_thread(has_thread));
}

TEST_CASE("polling alone brings an operation to its end") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
    Work work = sum_async(communicator, data);
    while (!work.test()) std::this_thread::yield();
    expect_sums(data, 2);
    expect(!communicator.progress(), "something is in flight");
  });
}

TEST_CASE("a progress thread brings an operation to its end while nobody waits") {
  run_ranks(
      2, "inproc",
      [](Communicator& communicator) {
        std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
        sum_async(communicator, data);
        while (communicator.statistics().operations == 0) std::this_thread::yield();
        expect_sums(data, 2);
      },
      with_progress_thread(true));
}

TEST_CASE("two threads that wait for different operations both return") {
  const auto has_thread = GENERATE(false, true);
  run_ranks(
      2, "inproc",
      [](Communicator& communicator) {
        for (int round = 0; round < 20; ++round) {
          auto buffers = buffers_of(communicator, 2);
          Work first = sum_async(communicator, buffers[0]);
          Work second = sum_async(communicator, buffers[1]);
          std::thread other([&] { second.wait(); });
          first.wait();
          other.join();
          expect_sums(buffers[0], 2);
          expect_sums(buffers[1], 2);
        }
      },
      with_progress_thread(has_thread));
}

TEST_CASE("blocking and asynchronous calls share the order of issue") {
  run_ranks(3, "inproc", [](Communicator& communicator) {
    auto buffers = buffers_of(communicator, 2);
    Work first = sum_async(communicator, buffers[0]);
    communicator.all_reduce(std::span<float>(buffers[1]));
    expect(first.test(), "the second overtook the first");
    communicator.barrier();
    expect_sums(buffers[0], 3);
    expect_sums(buffers[1], 3);
  });
}

TEST_CASE("a wait with an early deadline of its own leaves the operation in flight") {
  run_ranks(2, "inproc", [](Communicator& communicator) {
    std::vector<float> data(kCount, static_cast<float>(communicator.rank() + 1));
    if (communicator.rank() == 0) {
      Work work = sum_async(communicator, data);
      try {
        work.wait(Clock::now());
      } catch (const Error& error) {
        expect(error.code() == ErrorCode::kDeadline, error.what());
        expect(std::string(error.what()).find("still in flight") != std::string::npos,
               error.what());
      }
      work.wait();
    } else {
      communicator.all_reduce(std::span<float>(data));
    }
    expect_sums(data, 2);
  });
}

TEST_CASE("a handle outlives its communicator") {
  std::vector<Work> works(2);
  std::vector<std::vector<float>> buffers(2, std::vector<float>(kCount, 1.0F));
  run_ranks(2, "inproc", [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    works[rank] = sum_async(communicator, buffers[rank]);
    communicator.barrier();
  });
  for (Work& work : works) {
    REQUIRE(work.test());
    REQUIRE_NOTHROW(work.wait());
  }
}

}  // namespace kolo::test
