#include "train/models/small.h"

#include <stdexcept>
#include <string>

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

// A convolution, a normalisation and ReLU.
class Block {
 public:
  Block(Parameters& parameters, const std::string& number, std::int64_t in, std::int64_t out)
      : conv_(parameters, "conv" + number, in, out, kHalving),
        bn_(parameters, "bn" + number, out) {}

  Value operator()(Tape& tape, const Value& x) const { return bn_.relu(tape, conv_(tape, x)); }

 private:
  Conv2d conv_;
  BatchNorm2d bn_;
};

}  // namespace

std::unique_ptr<Chain> make_small(Parameters& parameters, const ModelSettings& settings) {
  if (settings.image[0] < 8 || settings.image[1] < 8) {
    throw std::invalid_argument("model 'small': images must be at least 8 x 8, not " +
                                settings.image.text());
  }
  auto chain = std::make_unique<Chain>(settings.parts);
  chain->add([&] { return Block(parameters, "1", settings.image[2], kFirst); });
  chain->add([&] { return Block(parameters, "2", kFirst, kSecond); });
  const std::int64_t pixels = side_after(settings.image[0]) * side_after(settings.image[1]);
  chain->add([&] {
    return [fc = Linear(parameters, "fc", kSecond * pixels, settings.classes)](Tape& tape,
                                                                               const Value& x) {
      return fc(tape, tensor::flatten(tape, tensor::max_pool2d(tape, x, 2, 2, 0)));
    };
  });
  return chain;
}

}  // namespace kolo::train
