// Schedules of the learning rate, at points with values computed by hand.
#include "train/optimizers/learning_rate.h"

#include <stdexcept>

#include "test/support/catch.h"

namespace kolo::train {
namespace {

TEST_CASE("the learning rate grows with the global batch") {
  CHECK(LearningRate({.base = 0.1f, .reference_batch = 256, .global_batch = 1024}).peak() ==
        Approx(0.4f));
  CHECK(LearningRate({.base = 0.1f, .reference_batch = 256, .global_batch = 64}).peak() ==
        Approx(0.025f));
}

TEST_CASE("warm-up rises in equal steps to the full rate") {
  const LearningRate rate(
      {.base = 0.8f, .warmup_iterations = 4, .total_iterations = 10, .decay = Decay::constant});
  CHECK(rate.at(0) == Approx(0.2f));
  CHECK(rate.at(1) == Approx(0.4f));
  CHECK(rate.at(3) == Approx(0.8f));
  CHECK(rate.at(4) == Approx(0.8f));
  CHECK(rate.at(1000) == Approx(0.8f));
}

TEST_CASE("the cosine falls from the full rate to almost zero") {
  const LearningRate rate({.base = 1, .warmup_iterations = 10, .total_iterations = 110});
  CHECK(rate.at(10) == Approx(1));
  CHECK(rate.at(35) == Approx(0.853553f));
  CHECK(rate.at(60) == Approx(0.5));
  CHECK(rate.at(109) == Approx(0.000247f).epsilon(0.01));
  CHECK(rate.at(5000) == rate.at(109));
  for (int i = 10; i < 109; ++i) REQUIRE(rate.at(i) > rate.at(i + 1));
}

TEST_CASE("steps multiply the rate at fixed intervals") {
  const LearningRate rate(
      {.base = 1, .total_iterations = 100, .decay = Decay::step, .step_iterations = 30});
  CHECK(rate.at(29) == Approx(1));
  CHECK(rate.at(30) == Approx(0.1f));
  CHECK(rate.at(59) == Approx(0.1f));
  CHECK(rate.at(60) == Approx(0.01f));
}

TEST_CASE("a polynomial falls from the full rate to almost zero") {
  const LearningRate rate({.base = 1,
                           .warmup_iterations = 10,
                           .total_iterations = 110,
                           .decay = Decay::polynomial,
                           .power = 2});
  CHECK(rate.at(10) == Approx(1));
  CHECK(rate.at(60) == Approx(0.25));
  CHECK(rate.at(109) == Approx(0.0001f).epsilon(0.01));
}

TEST_CASE("invalid settings of the learning rate are rejected") {
  CHECK_THROWS_AS(LearningRate({.base = -1}), std::invalid_argument);
  CHECK_THROWS_AS(LearningRate({.reference_batch = 0}), std::invalid_argument);
  CHECK_THROWS_AS(LearningRate({.total_iterations = 0}), std::invalid_argument);
  CHECK_THROWS_AS(LearningRate({.decay = Decay::step}), std::invalid_argument);
  CHECK_THROWS_AS(LearningRate({.power = 0}), std::invalid_argument);
  CHECK(decay_from("cosine") == Decay::cosine);
  CHECK_THROWS_WITH(decay_from("linear"),
                    "unknown decay 'linear' of the learning rate; expected one of constant, step, "
                    "cosine, polynomial");
}

}  // namespace
}  // namespace kolo::train
