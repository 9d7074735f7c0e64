// Comparison of a network with the reference values of its model.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tensor/network.h"
#include "test/support/catch.h"
#include "test/train/models/reference_file.h"

namespace kolo::train {

inline constexpr double kLogitsTolerance = 1e-4;
inline constexpr double kLossTolerance = 1e-5;
inline constexpr double kGradientTolerance = 4e-4;
inline constexpr std::size_t kEntries = 8;

inline void import_reference(tensor::Parameters& parameters) {
  for (std::size_t id = 0; id < parameters.list().size(); ++id) {
    parameters.import_values(static_cast<int>(id), reference_parameter(id, parameters.list()[id]));
  }
}

struct Images {
  std::vector<float> pixels;  // NHWC, from the script's NCHW
  std::vector<std::int32_t> labels;
};

inline Images make_images(const ReferenceCase& one) {
  const std::int64_t plane = std::int64_t{one.side} * one.side;
  const std::vector<float> planar =
      reference_uniform(one.images_ordinal, one.batch * one.channels * plane);
  Images images{std::vector<float>(planar.size()), {}};
  for (std::int64_t n = 0; n < one.batch; ++n) {
    images.labels.push_back(static_cast<std::int32_t>((3 * n + 1) % 10));
    for (std::int64_t channel = 0; channel < one.channels; ++channel) {
      for (std::int64_t at = 0; at < plane; ++at) {
        images.pixels[static_cast<std::size_t>((n * plane + at) * one.channels + channel)] =
            planar[static_cast<std::size_t>((n * one.channels + channel) * plane + at)];
      }
    }
  }
  return images;
}

inline double norm_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// |actual - expected| / |expected|, as vectors.
inline double distance(std::span<const float> actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  std::vector<double> difference;
  for (std::size_t i = 0; i < actual.size(); ++i) difference.push_back(actual[i] - expected[i]);
  return norm_of(difference) / norm_of(expected);
}

// Distance of a gradient or statistic from the file's norm, sum and entries, in units of the norm.
// The unit for a single entry is its share of the norm: 30 times the average entry, which real
// gradients reach.
inline double deviation(std::span<const float> actual, const std::vector<double>& expected) {
  REQUIRE(expected.size() == 2 + kEntries);
  const std::vector<double> values(actual.begin(), actual.end());
  double sum = 0;
  for (const double value : values) sum += value;
  const double norm = expected[0], root = std::sqrt(static_cast<double>(values.size()));
  double worst = std::max(std::abs(norm_of(values) - norm) / norm,
                          std::abs(sum - expected[1]) / (norm * root));
  const double share = norm * std::min(1.0, 30 / root);
  for (std::size_t j = 0; j < kEntries; ++j) {
    const double entry = values[(j * values.size() / kEntries + j) % values.size()];
    worst = std::max(worst, std::abs(entry - expected[2 + j]) / share);
  }
  return worst;
}

struct Worst {
  double deviation = 0;
  std::string where;
  void take(double found, const std::string& name) {
    if (found > deviation) *this = {found, name};
  }
};

inline Worst worst_gradient(const ReferenceCase& one, const tensor::Parameters& parameters) {
  Worst worst;
  for (std::size_t id = 0; id < parameters.list().size(); ++id) {
    const tensor::Parameter& parameter = parameters.list()[id];
    std::vector<float> gradient(static_cast<std::size_t>(parameter.shape.count()));
    parameters.export_gradients(static_cast<int>(id), gradient);
    worst.take(deviation(gradient, one.answers.at({"gradient", parameter.name})), parameter.name);
  }
  return worst;
}

// Runs an evaluation, then a training pass with backward. Checks the losses and the logits.
inline void check_passes(tensor::Network& network, const ReferenceCase& one) {
  const Images images = make_images(one);
  for (const std::string mode : {"evaluation", "training"}) {
    CAPTURE(mode);
    const bool is_training = mode == "training";
    const tensor::Outcome outcome =
        network.forward({images.pixels, images.labels},
                        is_training ? tensor::Mode::training : tensor::Mode::evaluation);
    CHECK(outcome.samples == one.batch);
    CHECK(outcome.loss == Approx(one.answers.at({"loss", mode})[0]).epsilon(kLossTolerance));
    CHECK(distance(network.logits(), one.answers.at({"logits", mode})) < kLogitsTolerance);
  }
  network.backward();
}

// Checks names, shapes and order of the parameters.
inline void check_parameters(const tensor::Parameters& parameters, const ReferenceFile& reference) {
  CHECK(parameters.count() == reference.total);
  REQUIRE(parameters.list().size() == reference.parameters.size());
  for (std::size_t i = 0; i < reference.parameters.size(); ++i) {
    const auto& [name, sizes] = reference.parameters[i];
    CHECK(parameters.list()[i].name == name);
    const tensor::Shape& shape = parameters.list()[i].shape;
    REQUIRE(shape.rank() == static_cast<int>(sizes.size()));
    for (int d = 0; d < shape.rank(); ++d) CHECK(shape[d] == sizes[static_cast<std::size_t>(d)]);
  }
}

inline bool has_backend(const std::string& name) {
  for (const std::string& known : tensor::backend_names()) {
    if (known == name) return true;
  }
  return false;
}

}  // namespace kolo::train
