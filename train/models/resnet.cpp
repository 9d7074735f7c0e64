#include "train/models/resnet.h"

#include <array>
#include <optional>
#include <string>

#include "tensor/layers.h"
#include "tensor/ops/pool.h"

namespace kolo::train {
namespace {

using tensor::BatchNorm2d;
using tensor::Conv2d;
using tensor::Conv2dSettings;
using tensor::Linear;
using tensor::Parameters;
using tensor::Tape;
using tensor::Value;

constexpr std::int64_t kExpansion = 4;
constexpr std::int64_t kStemChannels = 64;

Conv2dSettings one_by_one(std::int64_t stride = 1) { return {.kernel = 1, .stride = stride}; }
Conv2dSettings three_by_three(std::int64_t stride) {
  return {.kernel = 3, .stride = stride, .padding = 1};
}

// Convolutions 1x1 to `width` channels, 3x3, 1x1 to 4 x width; plus the input, converted to the
// same shape if necessary.
class Bottleneck {
 public:
  Bottleneck(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t width,
             std::int64_t stride)
      : conv1_(parameters, name + ".conv1", in, width, one_by_one()),
        bn1_(parameters, name + ".bn1", width),
        conv2_(parameters, name + ".conv2", width, width, three_by_three(stride)),
        bn2_(parameters, name + ".bn2", width),
        conv3_(parameters, name + ".conv3", width, width * kExpansion, one_by_one()),
        bn3_(parameters, name + ".bn3", width * kExpansion) {
    if (stride == 1 && in == width * kExpansion) return;
    shortcut_conv_.emplace(parameters, name + ".downsample.0", in, width * kExpansion,
                           one_by_one(stride));
    shortcut_bn_.emplace(parameters, name + ".downsample.1", width * kExpansion);
  }

  Value operator()(Tape& tape, const Value& x) const {
    Value y = bn1_.relu(tape, conv1_(tape, x));
    y = bn2_.relu(tape, conv2_(tape, y));
    y = conv3_(tape, y);
    const Value shortcut = shortcut_conv_ ? (*shortcut_bn_)(tape, (*shortcut_conv_)(tape, x)) : x;
    return bn3_.add_relu(tape, y, shortcut);
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  std::optional<Conv2d> shortcut_conv_;
  std::optional<BatchNorm2d> shortcut_bn_;
};

Conv2dSettings stem_convolution(Stem stem) {
  if (stem == Stem::cifar) return three_by_three(1);
  return {.kernel = 7, .stride = 2, .padding = 3};
}

class ResNet50 final : public tensor::Model {
 public:
  ResNet50(Parameters& parameters, const ModelSettings& settings)
      : has_pool_(settings.stem == Stem::imagenet),
        conv1_(parameters, "conv1", settings.image[2], kStemChannels,
               stem_convolution(settings.stem)),
        bn1_(parameters, "bn1", kStemChannels) {
    constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
    std::int64_t in = kStemChannels, width = 64;
    for (int layer = 1; layer <= 4; ++layer) {
      for (int block = 0; block < kBlocks[static_cast<std::size_t>(layer - 1)]; ++block) {
        const std::int64_t stride = layer > 1 && block == 0 ? 2 : 1;
        blocks_.emplace_back(parameters,
                             "layer" + std::to_string(layer) + "." + std::to_string(block), in,
                             width, stride);
        in = width * kExpansion;
      }
      width *= 2;
    }
    fc_.emplace(parameters, "fc", in, settings.classes);
  }

  Value forward(Tape& tape, const Value& images) override {
    Value x = bn1_.relu(tape, conv1_(tape, images));
    if (has_pool_) x = tensor::max_pool2d(tape, x, 3, 2, 1);
    for (const Bottleneck& block : blocks_) x = block(tape, x);
    return (*fc_)(tape, tensor::global_average_pool(tape, x));
  }

 private:
  bool has_pool_;
  Conv2d conv1_;
  BatchNorm2d bn1_;
  std::vector<Bottleneck> blocks_;
  std::optional<Linear> fc_;  // registered last, as torchvision does
};

}  // namespace

std::unique_ptr<tensor::Model> make_resnet50(Parameters& parameters,
                                             const ModelSettings& settings) {
  return std::make_unique<ResNet50>(parameters, settings);
}

}  // namespace kolo::train
