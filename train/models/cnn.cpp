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

}  // namespace

std::unique_ptr<Chain> make_cnn(Parameters& parameters, const ModelSettings& settings) {
  if (settings.image[0] < 4 || settings.image[1] < 4) {
    throw std::invalid_argument("model 'cnn': images must be at least 4 x 4, not " +
                                settings.image.text());
  }
  auto chain = std::make_unique<Chain>(settings.parts);
  chain->add([&] {
    return [conv = Conv2d(parameters, "conv1", settings.image[2], kFirst, kSameSize, kInitial)](
               Tape& tape, const Value& x) {
      return tensor::max_pool2d(tape, tensor::relu(tape, conv(tape, x)), 2, 2, 0);
    };
  });
  chain->add([&] {
    return [conv = Conv2d(parameters, "conv2", kFirst, kSecond, kSameSize, kInitial)](
               Tape& tape, const Value& x) {
      return tensor::max_pool2d(tape, tensor::relu(tape, conv(tape, x)), 2, 2, 0);
    };
  });
  const std::int64_t pixels = side_after(settings.image[0]) * side_after(settings.image[1]);
  chain->add([&] {
    return [fc = Linear(parameters, "fc1", kSecond * pixels, kHidden)](Tape& tape, const Value& x) {
      return tensor::relu(tape, fc(tape, tensor::flatten(tape, x)));
    };
  });
  chain->add([&] { return Linear(parameters, "fc2", kHidden, settings.classes); });
  return chain;
}

}  // namespace kolo::train
