// Each backend against the reference: same model, same numbers, all results.

#include <algorithm>
#include <cmath>
#include <thread>

#include "test/support/catch.h"
#include "test/support/sanitizers.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {

namespace {

// Largest distance, relative to the largest number expected.
double distance(std::span<const float> expected, std::span<const float> actual) {
  REQUIRE(expected.size() == actual.size());
  double largest = 1e-6, far = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    far =
        std::max(far, std::abs(static_cast<double>(expected[i]) - static_cast<double>(actual[i])));
  }
  return far / largest;
}

// Three threads only on as many cores, because oneDNN's threads spin while they wait.
std::vector<int> thread_counts() {
  if (kolo::test::kIsThreadSanitized) return {2};
  if (std::thread::hardware_concurrency() < 3) return {1, 2};
  return {1, 2, 3};
}

// The thread sanitizer skips the reference: it has one thread, and would be compared with itself.
std::vector<std::string> backends_under_test() {
  std::vector<std::string> names = backend_names();
  if (kolo::test::kIsThreadSanitized) std::erase(names, "reference");
  return names;
}

// Largest distances of results and of gradients.
struct Tolerance {
  double result = 1e-4, gradient = 2e-3;
};

// Several steps of gradient descent on both, so that state left by a pass is compared too.
void compare(const SmallModel& model, const std::string& backend, int threads, int batch_size,
             Precision precision = Precision::float32, Tolerance tolerance = {}) {
  Network expected = make_network(model, "reference", 1, 1, precision);
  Network actual = make_network(model, backend, threads, 1, precision);
  for (unsigned step = 0; step < 2; ++step) {
    const RandomBatch batch(model.image, batch_size, kClasses, step);
    INFO(model.name << ", " << backend << ", " << threads << " threads, batch " << batch_size
                    << ", step " << step);
    const Outcome a = expected.forward(batch.view(), Mode::training);
    const Outcome b = actual.forward(batch.view(), Mode::training);
    CHECK(b.loss == Approx(a.loss).epsilon(tolerance.result));
    CHECK(distance(expected.logits(), actual.logits()) < tolerance.result);
    expected.backward();
    actual.backward();
    const Parameters& p = expected.parameters();
    for (const Parameter& parameter : p.list()) {
      const auto begin = static_cast<std::size_t>(parameter.range.begin);
      const auto count = static_cast<std::size_t>(parameter.range.count);
      INFO(parameter.name);
      CHECK(distance(p.gradients().subspan(begin, count),
                     actual.parameters().gradients().subspan(begin, count)) < tolerance.gradient);
    }
    CHECK(distance(p.buffers(), actual.parameters().buffers()) < tolerance.result);
    expected.forward(batch.view(), Mode::evaluation);
    actual.forward(batch.view(), Mode::evaluation);
    CHECK(distance(expected.logits(), actual.logits()) < tolerance.result);
    std::ranges::copy(p.gradients(), actual.parameters().gradients().begin());
    for (Network* network : {&expected, &actual}) {
      const auto values = network->parameters().values();
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] -= 0.01F * network->parameters().gradients()[i];
      }
    }
  }
}

}  // namespace

TEST_CASE("every backend computes what the reference computes") {
  const auto backend = GENERATE(from_range(backends_under_test()));
  const int threads = GENERATE(from_range(thread_counts()));
  for (const std::int64_t channels : kolo::test::all_or_few<std::int64_t>({5, 16, 24}, {5, 16})) {
    for (const SmallModel& model : small_models(channels)) {
      compare(model, backend, threads, 6);
    }
  }
}

TEST_CASE("large batches are split among threads without an error at the borders") {
  const auto backend = GENERATE(from_range(backends_under_test()));
  for (const int threads : thread_counts()) {
    compare(two_convolutions("3x3 on two by two", {2, 2, 32}, 32, {3, 1, 1, false}), backend,
            threads, 35);
    compare(two_convolutions("3x3 stride 2 on two by two", {2, 2, 32}, 32, {3, 2, 1, false}),
            backend, threads, 35);
    compare(two_convolutions("3x3 stride 2 on four by four", {4, 4, 32}, 32, {3, 2, 1, false}),
            backend, threads, 35);
    compare(two_convolutions("1x1 stride 2", {4, 4, 16}, 48, {1, 2, 0, false}), backend, threads,
            35);
    compare(normalized("norm, addition and relu", {4, 4, 16}, 64, true), backend, threads, 35);
    compare(pooled("max pool 3x3 stride 2 padding 1", {8, 8, 3}, 32, 3, 2, 1), backend, threads,
            35);
  }
}

TEST_CASE("bfloat16 computes nearly what the reference computes with rounded inputs") {
  const std::string backend = "onednn";
  const std::vector<std::string> names = backend_names();
  if (std::ranges::find(names, backend) == names.end()) return;
  try {
    make_backend(backend, 1, Precision::bfloat16);
  } catch (const std::invalid_argument& error) {
    CHECK_THAT(error.what(), ContainsSubstring("no instructions for bfloat16"));
    WARN("skipped: " << error.what());
    return;
  }
  for (const int threads : thread_counts()) {
    for (const SmallModel& model : small_models(16))
      compare(model, backend, threads, 6, Precision::bfloat16, {2e-3, 1e-2});
  }
}

}  // namespace kolo::tensor::test
