// Each operation's gradient against finite differences.
//
// For a random direction v of one parameter w, (L(w + h v) - L(w - h v)) / 2h must equal gradient .
// v. So one number checks all elements of a parameter, and rounding errors average out.

#include <cmath>

#include "test/support/catch.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {

namespace {

double loss_at(Network& network, const RandomBatch& batch) {
  return network.forward(batch.view(), Mode::training).loss;
}

// Computes gradient . v by finite differences, and restores the values.
double difference(Network& network, const RandomBatch& batch, std::span<float> values,
                  const std::vector<float>& direction, float step) {
  const std::vector<float> before(values.begin(), values.end());
  double sides[2];
  for (const int side : {0, 1}) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = before[i] + (side == 0 ? -step : step) * direction[i];
    }
    sides[side] = loss_at(network, batch);
  }
  std::copy(before.begin(), before.end(), values.begin());
  return (sides[1] - sides[0]) / (2 * static_cast<double>(step));
}

// A random direction of unit length, close to the gradient, so that the product is large enough to
// measure.
std::vector<float> direction_near(std::span<const float> gradient, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> direction(gradient.size());
  double length = 0, gradient_length = 1e-30;
  for (const float g : gradient) gradient_length += static_cast<double>(g) * static_cast<double>(g);
  for (std::size_t i = 0; i < direction.size(); ++i) {
    const auto along =
        static_cast<float>(static_cast<double>(gradient[i]) / std::sqrt(gradient_length));
    direction[i] = along + 0.5F * normal(random) / std::sqrt(static_cast<float>(direction.size()));
    length += static_cast<double>(direction[i]) * static_cast<double>(direction[i]);
  }
  for (float& d : direction) d /= static_cast<float>(std::sqrt(length));
  return direction;
}

void check_gradients(const SmallModel& model, const std::string& backend, unsigned seed) {
  Network network = make_network(model, backend, 1, seed);
  RandomBatch batch(model.image, 8, kClasses, seed);
  batch.labels[1] = -1;  // padding counts only in the statistics
  batch.divisor = 7;
  batch.label_smoothing = 0.1;
  std::mt19937 random(seed);
  loss_at(network, batch);
  network.backward();
  Parameters& p = network.parameters();
  for (const Parameter& parameter : p.list()) {
    const auto begin = static_cast<std::size_t>(parameter.range.begin);
    const auto count = static_cast<std::size_t>(parameter.range.count);
    const auto gradient = p.gradients().subspan(begin, count);
    const auto direction = direction_near(gradient, random);
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      expected += static_cast<double>(gradient[i]) * static_cast<double>(direction[i]);
    }
    // Two step widths. If a ReLU switches between the two sides, the wide step has an error; the
    // narrow step has a smaller one, but more rounding. A wrong derivative fails with both.
    const auto values = p.values().subspan(begin, count);
    const double wide = difference(network, batch, values, direction, 2e-3F);
    const double narrow = difference(network, batch, values, direction, 5e-4F);
    const double measured = std::abs(wide - expected) < std::abs(narrow - expected) ? wide : narrow;
    INFO(model.name << ", " << backend << ", " << parameter.name << ", seed " << seed);
    CHECK(measured == Approx(expected).epsilon(0.02).margin(5e-4));
  }
}

}  // namespace

TEST_CASE("every gradient agrees with finite differences") {
  const auto backend = GENERATE(from_range(backend_names()));
  for (const std::int64_t channels : {4, 16, 24, 32}) {
    for (const SmallModel& model : small_models(channels)) {
      for (const unsigned seed : {1U, 2U}) check_gradients(model, backend, seed);
    }
  }
}

}  // namespace kolo::tensor::test
