// Gradient buckets: averages of any flat array, in whatever order its parts become final.
#include "collectives/gradient_buckets.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "test/collectives/support/ranks.h"
#include "test/support/catch.h"

namespace kolo::test {
namespace {

const std::vector<std::size_t> kLengths{5, 0, 100, 1, 1, 64, 300, 7};
constexpr BucketSizes kSmall{40, 256};

std::size_t total() { return std::accumulate(kLengths.begin(), kLengths.end(), std::size_t{0}); }

std::string failure_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("gradient buckets are ranges that end with the parameter that fills them") {
  const auto buckets = plan_gradient_buckets(kLengths, 4, kSmall);
  std::size_t element = 0, parameter = 0;
  for (const GradientBucket& bucket : buckets) {
    CHECK(bucket.first == element);
    CHECK(bucket.first_parameter == parameter);
    element += bucket.count;
    parameter += bucket.parameters;
    const std::size_t last = kLengths[parameter - 1] * 4;
    const std::size_t limit = bucket.first == 0 ? 40 : 256;
    CHECK((bucket.count * 4 - last < limit));
    CHECK((bucket.count * 4 >= limit || parameter == kLengths.size()));
  }
  CHECK(element == total());
  CHECK(parameter == kLengths.size());
  CHECK(plan_gradient_buckets({}, 4, kSmall).empty());
  CHECK_THROWS_AS(plan_gradient_buckets(kLengths, 4, {0, 1}), std::invalid_argument);
}

TEST_CASE("gradient buckets average in any order of readiness, another on each rank") {
  const bool is_double = GENERATE(false, true);
  run_ranks(3, "inproc", [&](Communicator& communicator) {
    std::vector<float> floats(total());
    std::vector<double> doubles(total());
    const Buffer gradients = is_double ? Buffer(doubles) : Buffer(floats);
    GradientBuckets buckets(communicator, gradients, kLengths, {.sizes = kSmall});
    expect(buckets.buckets().size() >= 4, "several buckets");
    std::mt19937 random(static_cast<unsigned>(communicator.rank()));
    for (int iteration = 0; iteration < 20; ++iteration) {
      for (std::size_t i = 0; i < total(); ++i) {
        const auto value = static_cast<int>(i) + 3 * communicator.rank() + iteration;
        floats[i] = static_cast<float>(value);
        doubles[i] = value;
      }
      std::vector<std::size_t> order(kLengths.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::shuffle(order, random);
      if (iteration % 4 != communicator.rank()) {
        for (const std::size_t parameter : order) buckets.ready(parameter);
      } else {
        buckets.ready(order.front());
        buckets.ready_all();
      }
      buckets.wait();
      for (std::size_t i = 0; i < total(); ++i) {
        const double got = is_double ? doubles[i] : double{floats[i]};
        expect(got == static_cast<double>(i) + 3 + iteration, "the average of three ranks");
      }
    }
  });
}

TEST_CASE("gradient buckets refuse wrong calls and name the parameter") {
  run_ranks(1, "inproc", [](Communicator& communicator) {
    std::vector<float> gradients(total());
    expect(failure_of([&] {
             GradientBuckets(communicator, gradients, std::vector<std::size_t>{3});
           }).find("have 3 elements, and there are 478 gradients") != std::string::npos,
           "lengths that do not add up");
    GradientBuckets buckets(communicator, gradients, kLengths);
    expect(failure_of([&] { buckets.ready(8); }).find("parameter 8 of 8") != std::string::npos,
           "an unknown parameter");
    for (std::size_t i = 0; i < kLengths.size(); ++i) {
      if (i != 3) buckets.ready(i);
    }
    expect(failure_of([&] { buckets.wait(); }).find("rank 0 waits, but its parameter 3 of 8") !=
               std::string::npos,
           "a parameter that was forgotten");
    expect(failure_of([&] { buckets.ready(2); }).find("parameter 2 is ready for the second time") !=
               std::string::npos,
           "a parameter that was ready before");
    buckets.ready(3);
    buckets.wait();
  });
}

TEST_CASE("a rank that leaves out an iteration is reported") {
  std::vector<std::string> texts(3);
  run_ranks(3, "inproc", [&](Communicator& communicator) {
    std::vector<float> gradients(total());
    GradientBuckets buckets(communicator, gradients, kLengths, {.sizes = kSmall});
    const int iterations = communicator.rank() == 1 ? 2 : 3;
    texts[static_cast<std::size_t>(communicator.rank())] = failure_of([&] {
      for (int i = 0; i < iterations; ++i) {
        buckets.ready_all();
        buckets.wait();
      }
      communicator.barrier();
    });
  });
  for (const std::string& text : texts) {
    INFO(text);
    CHECK_THAT(text, ContainsSubstring("rank 1") && ContainsSubstring("barrier") &&
                         ContainsSubstring("all_reduce"));
  }
}

}  // namespace kolo::test
