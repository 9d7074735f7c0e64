// SGD compared with torch, and applied at once compared with in pieces.
#include "train/optimizers/sgd.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

constexpr int kCount = 13;  // as in make_sgd_reference.py
constexpr int kSteps = 5;

std::vector<float> start() {
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) values.push_back(static_cast<float>(i % 7 - 3) / 4);
  return values;
}

std::vector<float> gradients(int step) {
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i)
    values.push_back(static_cast<float>((5 * i + 3 * step) % 11 - 5) / 8);
  return values;
}

float rate(int step) { return 0.1f / static_cast<float>(step + 1); }

TEST_CASE("SGD gives torch's values") {
  std::ifstream file(KOLO_SOURCE_DIR "/test/train/optimizers/sgd_reference.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#') continue;
    std::istringstream words(line);
    SgdSettings settings;
    words >> settings.momentum >> settings.weight_decay >> settings.has_nesterov;
    std::vector<float> parameters = start();
    Sgd sgd(settings, 0, kCount);
    for (int step = 0; step < kSteps; ++step) sgd.apply(0, parameters, gradients(step), rate(step));
    for (const float actual : parameters) {
      float expected = 0;
      REQUIRE(words >> expected);
      CHECK(actual == Approx(expected).epsilon(1e-6).margin(
                          1e-7));  // a few rounding errors of numbers below 1
    }
    ++cases;
  }
  CHECK(cases == 5);
}

TEST_CASE("SGD applied in pieces, or to shards, gives the same bits as applied at once") {
  const SgdSettings settings{.momentum = 0.9f, .weight_decay = 0.01f};
  std::vector<float> whole = start(), pieces = start();
  Sgd all(settings, 0, kCount);
  Sgd front(settings, 0, 5), back(settings, 5, kCount - 5);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = gradients(step);
    all.apply(0, whole, gradient, rate(step));
    const auto part = [&](Sgd& sgd, std::size_t begin, std::size_t count) {
      sgd.apply(static_cast<std::int64_t>(begin), std::span(pieces).subspan(begin, count),
                std::span(gradient).subspan(begin, count), rate(step));
    };
    part(back, 8, 5);
    part(front, 0, 5);
    part(back, 5, 3);
    part(back, 8, 0);
  }
  CHECK(whole == pieces);
  CHECK(std::vector<float>(all.velocity().begin() + 5, all.velocity().end()) ==
        std::vector<float>(back.velocity().begin(), back.velocity().end()));
}

TEST_CASE("SGD rejects ranges outside of its own") {
  Sgd sgd({}, 10, 4);
  std::vector<float> three(3), five(5);
  CHECK_NOTHROW(sgd.apply(11, three, three, 0.1f));
  CHECK_THROWS_WITH(
      sgd.apply(12, three, three, 0.1f),
      "Sgd: 3 parameters and 3 gradients from element 12, but this optimizer holds 4 from 10");
  CHECK_THROWS_AS(sgd.apply(9, three, three, 0.1f), std::invalid_argument);
  CHECK_THROWS_AS(sgd.apply(10, five, five, 0.1f), std::invalid_argument);
  CHECK_THROWS_AS(sgd.apply(10, three, std::span(three).first(2), 0.1f), std::invalid_argument);
  CHECK_THROWS_AS(Sgd({}, -1, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sgd({.momentum = -0.1f}, 0, 4), std::invalid_argument);
  CHECK_THROWS_AS(Sgd({.momentum = 0, .has_nesterov = true}, 0, 4), std::invalid_argument);
}

}  // namespace
}  // namespace kolo::train
