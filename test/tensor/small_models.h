#pragma once

// Small models, one for each operation, in which every derivative is on the path from some
// parameter to the loss.

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tensor/layers.h"
#include "tensor/network.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/pool.h"

namespace kolo::tensor::test {

// A model whose forward is a function.
class FunctionModel : public Model {
 public:
  using Forward = std::function<Value(Tape&, const Value&)>;
  explicit FunctionModel(Forward forward) : forward_(std::move(forward)) {}
  Value forward(Tape& tape, const Value& images) override { return forward_(tape, images); }

 private:
  Forward forward_;
};

// Registers layers, and returns the forward function that connects them.
using Recipe = std::function<FunctionModel::Forward(Parameters&)>;

struct SmallModel {
  const char* name;
  Shape image;
  Recipe recipe;
};

inline Network make_network(const SmallModel& model, const std::string& backend, int threads = 1,
                            std::uint64_t seed = 1, Precision precision = Precision::float32) {
  Parameters parameters;
  auto forward = model.recipe(parameters);
  return Network(std::make_unique<FunctionModel>(std::move(forward)), std::move(parameters),
                 model.image, make_backend(backend, threads, precision), seed);
}

// Random images and labels for `count` samples.
struct RandomBatch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  double divisor = 0;
  double label_smoothing = 0;

  RandomBatch(const Shape& image, int count, int classes, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> pixel(-1.0F, 1.0F);
    images.resize(static_cast<std::size_t>(image.count() * count));
    for (float& value : images) value = pixel(random);
    for (int n = 0; n < count; ++n) {
      labels.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(classes)));
    }
  }
  Batch view() const { return {images, labels, divisor, label_smoothing}; }
};

inline constexpr int kClasses = 5;

// A 3x3 convolution to `mid` channels, one with the given settings, then a layer to the classes.
inline SmallModel two_convolutions(const char* name, Shape image, std::int64_t mid,
                                   Conv2dSettings settings) {
  return {name, image, [=](Parameters& p) -> FunctionModel::Forward {
            const Conv2d first(p, "first", image[2], mid, {3, 1, 1, false});
            const Conv2d second(p, "second", mid, mid, settings);
            const Linear last(p, "last", mid, kClasses);
            return [=](Tape& tape, const Value& x) {
              return last(tape, global_average_pool(tape, second(tape, first(tape, x))));
            };
          }};
}

// Convolution, normalisation with ReLU, convolution, normalisation, then a layer to the classes.
// With `residual` the second normalisation adds the output of the first, and applies ReLU.
inline SmallModel normalized(const char* name, Shape image, std::int64_t mid, bool residual) {
  return {name, image, [=](Parameters& p) -> FunctionModel::Forward {
            const Conv2d first(p, "first", image[2], mid, {3, 1, 1, false});
            const BatchNorm2d first_norm(p, "first_norm", mid);
            const Conv2d second(p, "second", mid, mid, {3, 1, 1, false});
            const BatchNorm2d second_norm(p, "second_norm", mid);
            const Linear last(p, "last", mid * image[0] * image[1], kClasses);
            return [=](Tape& tape, const Value& x) {
              Value a = first_norm.relu(tape, first(tape, x));
              Value b = second(tape, a);
              b = residual ? second_norm.add_relu(tape, b, a) : second_norm(tape, b);
              return last(tape, flatten(tape, b));
            };
          }};
}

inline SmallModel pooled(const char* name, Shape image, std::int64_t mid, std::int64_t kernel,
                         std::int64_t stride, std::int64_t padding) {
  return {name, image, [=](Parameters& p) -> FunctionModel::Forward {
            const Conv2d first(p, "first", image[2], mid, {3, 1, 1, true});
            const Conv2d second(p, "second", mid, mid, {1, 1, 0, true});
            const Linear last(p, "last", mid, kClasses);
            return [=](Tape& tape, const Value& x) {
              const Value a = relu(tape, first(tape, x));
              const Value b = max_pool2d(tape, a, kernel, stride, padding);
              const Value c = second(tape, b);
              return last(tape, global_average_pool(tape, add(tape, c, b, true)));
            };
          }};
}

// Every operation at sizes that are not multiples of a vector; `mid` inner channels.
inline std::vector<SmallModel> small_models(std::int64_t mid) {
  return {
      two_convolutions("3x3 padded", {5, 6, 3}, mid, {3, 1, 1, false}),
      two_convolutions("3x3 stride 2, bias", {7, 7, 3}, mid, {3, 2, 1, true}),
      two_convolutions("1x1", {3, 2, 1}, mid, {1, 1, 0, false}),
      two_convolutions("1x1 stride 2", {4, 5, 2}, mid, {1, 2, 0, false}),
      two_convolutions("7x7 stride 2 padding 3", {9, 8, 3}, mid, {7, 2, 3, false}),
      two_convolutions("3x3 on one pixel", {1, 1, 4}, mid, {3, 1, 1, false}),
      two_convolutions("3x3 stride 2 on two by two", {2, 2, 16}, mid, {3, 2, 1, false}),
      two_convolutions("3x3 on two by two", {2, 2, 3}, mid, {3, 1, 1, false}),
      two_convolutions("5x5 unpadded, bias", {6, 5, 1}, mid, {5, 1, 0, true}),
      normalized("norm and relu", {4, 3, 3}, mid, false),
      normalized("norm, addition and relu", {4, 3, 3}, mid, true),
      normalized("norm on one pixel", {1, 1, 3}, mid, true),
      pooled("max pool 3x3 stride 2 padding 1", {7, 6, 2}, mid, 3, 2, 1),
      pooled("max pool 2x2", {6, 5, 2}, mid, 2, 2, 0),
  };
}

}  // namespace kolo::tensor::test
