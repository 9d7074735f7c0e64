#include "train/models/small.h"

#include <stdexcept>

#include "tensor/layers.h"
#include "tensor/ops/pool.h"

namespace kolo::train {
namespace {

using tensor::BatchNorm2d;
using tensor::Conv2d;
using tensor::Linear;
using tensor::Parameters;
using tensor::Tape;
using tensor::Value;

constexpr std::int64_t kFirst = 16;
constexpr std::int64_t kSecond = 32;
constexpr tensor::Conv2dSettings kHalving{.kernel = 3, .stride = 2, .padding = 1};

// Two convolutions halve the side and round up, then a pooling halves it and rounds down.
std::int64_t side_after(std::int64_t side) { return ((side + 1) / 2 + 1) / 2 / 2; }

class Small final : public tensor::Model {
 public:
  Small(Parameters& parameters, const ModelSettings& settings)
      : conv1_(parameters, "conv1", settings.image[2], kFirst, kHalving),
        bn1_(parameters, "bn1", kFirst),
        conv2_(parameters, "conv2", kFirst, kSecond, kHalving),
        bn2_(parameters, "bn2", kSecond),
        fc_(parameters, "fc",
            kSecond * side_after(settings.image[0]) * side_after(settings.image[1]),
            settings.classes) {}

  Value forward(Tape& tape, const Value& images) override {
    Value x = bn1_.relu(tape, conv1_(tape, images));
    x = bn2_.relu(tape, conv2_(tape, x));
    x = tensor::max_pool2d(tape, x, 2, 2, 0);
    return fc_(tape, tensor::flatten(tape, x));
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Linear fc_;
};

}  // namespace

std::unique_ptr<tensor::Model> make_small(Parameters& parameters, const ModelSettings& settings) {
  if (settings.image[0] < 8 || settings.image[1] < 8) {
    throw std::invalid_argument("model 'small': images must be at least 8 x 8, not " +
                                settings.image.text());
  }
  return std::make_unique<Small>(parameters, settings);
}

}  // namespace kolo::train
