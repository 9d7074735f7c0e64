// Optimizers compared with torch and with formulas in float64, and applied at once compared with in
// pieces.
#include "train/optimizers/optimizer.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

constexpr int kCount = 13;  // as in make_optimizer_reference.py
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

UpdateStep update(int step) { return {0.1f / static_cast<float>(step + 1), step + 1}; }

const std::vector<Layer> kLayers{{{0, 8}, true}, {{8, 5}, false}};

OptimizerSettings read_settings_from(std::istream& words) {
  OptimizerSettings settings;
  std::string kind;
  words >> kind;
  settings.kind = optimizer_from(kind);
  switch (settings.kind) {
    case OptimizerKind::sgd:
      words >> settings.momentum >> settings.weight_decay >> settings.has_nesterov;
      break;
    case OptimizerKind::adamw:
      words >> settings.weight_decay >> settings.beta1 >> settings.beta2;
      break;
    case OptimizerKind::lars:
      words >> settings.momentum >> settings.weight_decay >> settings.trust;
      break;
  }
  return settings;
}

TEST_CASE("optimizers give the values of torch and of the formulas") {
  std::ifstream file(KOLO_SOURCE_DIR "/test/train/optimizers/optimizer_reference.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#') continue;
    CAPTURE(line);
    std::istringstream words(line);
    const OptimizerSettings settings = read_settings_from(words);
    std::vector<float> parameters = start();
    const auto optimizer = make_optimizer(settings, 0, kCount, kLayers);
    for (int step = 0; step < kSteps; ++step)
      optimizer->apply(0, parameters, gradients(step), update(step));
    for (const float actual : parameters) {
      float expected = 0;
      REQUIRE(words >> expected);
      // a few rounding errors of numbers below 1
      CHECK(actual == Approx(expected).epsilon(1e-6).margin(2e-7));
    }
    ++cases;
  }
  CHECK(cases == 11);
}

std::vector<float> state_of(Optimizer& optimizer) {
  std::vector<float> all;
  for (const OptimizerState& one : optimizer.state())
    all.insert(all.end(), one.values.begin(), one.values.end());
  return all;
}

TEST_CASE("an optimizer applied in pieces, or to shards, gives the same bits as applied at once") {
  const auto kind = GENERATE(OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lars);
  CAPTURE(name_of(kind));
  const OptimizerSettings settings{.kind = kind, .momentum = 0.9f, .weight_decay = 0.01f};
  std::vector<float> whole = start(), pieces = start();
  const auto all = make_optimizer(settings, 0, kCount, kLayers);
  const auto front = make_optimizer(settings, 0, 8, kLayers);
  const auto back = make_optimizer(settings, 8, kCount - 8, kLayers);
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = gradients(step);
    all->apply(0, whole, gradient, update(step));
    const auto part = [&](Optimizer& optimizer, std::size_t begin, std::size_t count) {
      optimizer.apply(static_cast<std::int64_t>(begin), std::span(pieces).subspan(begin, count),
                      std::span(gradient).subspan(begin, count), update(step));
    };
    if (needs_whole_layers(kind)) {
      part(*back, 8, 5);
      part(*front, 0, 8);
      continue;
    }
    part(*back, 10, 3);
    part(*front, 3, 5);
    part(*front, 0, 3);
    part(*back, 8, 2);
    part(*back, 9, 0);
  }
  CHECK(whole == pieces);
  const std::vector<float> ends = state_of(*back), state = state_of(*all);
  CHECK(std::vector<float>(state.end() - 5, state.end()) ==
        std::vector<float>(ends.end() - 5, ends.end()));
}

TEST_CASE("LARS rejects a part of a layer") {
  const OptimizerSettings settings{.kind = OptimizerKind::lars};
  const auto optimizer = make_optimizer(settings, 0, kCount, kLayers);
  std::vector<float> four(4);
  CHECK_THROWS_WITH(optimizer->apply(0, four, four, {0.1f}),
                    "Lars: elements 0 to 4 cut the layer of elements 0 to 8");
}

TEST_CASE("an optimizer rejects ranges outside of its own") {
  const auto optimizer = make_optimizer({}, 10, 4, {});
  std::vector<float> three(3), five(5);
  CHECK_NOTHROW(optimizer->apply(11, three, three, {0.1f}));
  CHECK_THROWS_WITH(
      optimizer->apply(12, three, three, {0.1f}),
      "optimizer: 3 parameters and 3 gradients from element 12, but it holds 4 from 10");
  CHECK_THROWS_AS(optimizer->apply(9, three, three, {0.1f}), std::invalid_argument);
  CHECK_THROWS_AS(optimizer->apply(10, five, five, {0.1f}), std::invalid_argument);
  CHECK_THROWS_AS(optimizer->apply(10, three, std::span(three).first(2), {0.1f}),
                  std::invalid_argument);
}

TEST_CASE("an optimizer rejects settings out of range") {
  const auto make = [](const OptimizerSettings& settings) {
    make_optimizer(settings, 0, 4, kLayers);
  };
  using Kind = OptimizerKind;
  CHECK_THROWS_AS(make_optimizer({}, -1, 4, {}), std::invalid_argument);
  CHECK_THROWS_AS(make({.momentum = -0.1f}), std::invalid_argument);
  CHECK_THROWS_AS(make({.momentum = 0, .has_nesterov = true}), std::invalid_argument);
  CHECK_THROWS_AS(make({.kind = Kind::adamw, .beta1 = 1}), std::invalid_argument);
  CHECK_THROWS_AS(make({.kind = Kind::adamw, .epsilon = 0}), std::invalid_argument);
  CHECK_THROWS_AS(make({.kind = Kind::adamw, .weight_decay = -1}), std::invalid_argument);
  CHECK_THROWS_AS(make({.kind = Kind::lars, .trust = 0}), std::invalid_argument);
  CHECK_THROWS_WITH(optimizer_from("adam"),
                    "unknown optimizer 'adam'; expected one of sgd, adamw, lars");
}

}  // namespace
}  // namespace kolo::train
