#include "train/models/cnn.h"

#include <stdexcept>

#include "tensor/layers.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/pool.h"

namespace kolo::train {
namespace {

using tensor::Conv2d;
using tensor::Linear;
using tensor::Parameters;
using tensor::Tape;
using tensor::Value;

constexpr std::int64_t kFirst = 32;
constexpr std::int64_t kSecond = 64;
constexpr std::int64_t kHidden = 128;
constexpr tensor::Conv2dSettings kSameSize{
    .kernel = 3, .stride = 1, .padding = 1, .has_bias = true};
constexpr tensor::Initial kInitial = tensor::Initial::uniform_fan_in;

// Two poolings halve the side and round down.
std::int64_t side_after(std::int64_t side) { return side / 2 / 2; }

class Cnn final : public tensor::Model {
 public:
  Cnn(Parameters& parameters, const ModelSettings& settings)
      : conv1_(parameters, "conv1", settings.image[2], kFirst, kSameSize, kInitial),
        conv2_(parameters, "conv2", kFirst, kSecond, kSameSize, kInitial),
        fc1_(parameters, "fc1",
             kSecond * side_after(settings.image[0]) * side_after(settings.image[1]), kHidden),
        fc2_(parameters, "fc2", kHidden, settings.classes) {}

  Value forward(Tape& tape, const Value& images) override {
    Value x = tensor::max_pool2d(tape, tensor::relu(tape, conv1_(tape, images)), 2, 2, 0);
    x = tensor::max_pool2d(tape, tensor::relu(tape, conv2_(tape, x)), 2, 2, 0);
    x = tensor::relu(tape, fc1_(tape, tensor::flatten(tape, x)));
    return fc2_(tape, x);
  }

 private:
  Conv2d conv1_;
  Conv2d conv2_;
  Linear fc1_;
  Linear fc2_;
};

}  // namespace

std::unique_ptr<tensor::Model> make_cnn(Parameters& parameters, const ModelSettings& settings) {
  if (settings.image[0] < 4 || settings.image[1] < 4) {
    throw std::invalid_argument("model 'cnn': images must be at least 4 x 4, not " +
                                settings.image.text());
  }
  return std::make_unique<Cnn>(parameters, settings);
}

}  // namespace kolo::train
