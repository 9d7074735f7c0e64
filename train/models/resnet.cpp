#include "train/models/resnet.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

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

constexpr std::int64_t kStemChannels = 64;

Conv2dSettings one_by_one(std::int64_t stride = 1) { return {.kernel = 1, .stride = stride}; }
Conv2dSettings three_by_three(std::int64_t stride) {
  return {.kernel = 3, .stride = stride, .padding = 1};
}

// The input of a block, converted to the shape of its output if necessary.
class Shortcut {
 public:
  Shortcut(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t out,
           std::int64_t stride) {
    if (stride == 1 && in == out) return;
    conv_.emplace(parameters, name + ".downsample.0", in, out, one_by_one(stride));
    bn_.emplace(parameters, name + ".downsample.1", out);
  }

  Value operator()(Tape& tape, const Value& x) const {
    return conv_ ? (*bn_)(tape, (*conv_)(tape, x)) : x;
  }

 private:
  std::optional<Conv2d> conv_;
  std::optional<BatchNorm2d> bn_;
};

// Two convolutions 3x3 with `width` channels, plus the shortcut.
class BasicBlock {
 public:
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t width,
             std::int64_t stride)
      : conv1_(parameters, name + ".conv1", in, width, three_by_three(stride)),
        bn1_(parameters, name + ".bn1", width),
        conv2_(parameters, name + ".conv2", width, width, three_by_three(1)),
        bn2_(parameters, name + ".bn2", width),
        shortcut_(parameters, name, in, width, stride) {}

  Value operator()(Tape& tape, const Value& x) const {
    const Value y = conv2_(tape, bn1_.relu(tape, conv1_(tape, x)));
    return bn2_.add_relu(tape, y, shortcut_(tape, x));
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Shortcut shortcut_;
};

// Convolutions 1x1 to `width` channels, 3x3, 1x1 to 4 x width, plus the shortcut.
class Bottleneck {
 public:
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(Parameters& parameters, const std::string& name, std::int64_t in, std::int64_t width,
             std::int64_t stride)
      : conv1_(parameters, name + ".conv1", in, width, one_by_one()),
        bn1_(parameters, name + ".bn1", width),
        conv2_(parameters, name + ".conv2", width, width, three_by_three(stride)),
        bn2_(parameters, name + ".bn2", width),
        conv3_(parameters, name + ".conv3", width, width * kExpansion, one_by_one()),
        bn3_(parameters, name + ".bn3", width * kExpansion),
        shortcut_(parameters, name, in, width * kExpansion, stride) {}

  Value operator()(Tape& tape, const Value& x) const {
    Value y = bn1_.relu(tape, conv1_(tape, x));
    y = bn2_.relu(tape, conv2_(tape, y));
    y = conv3_(tape, y);
    return bn3_.add_relu(tape, y, shortcut_(tape, x));
  }

 private:
  Conv2d conv1_;
  BatchNorm2d bn1_;
  Conv2d conv2_;
  BatchNorm2d bn2_;
  Conv2d conv3_;
  BatchNorm2d bn3_;
  Shortcut shortcut_;
};

Conv2dSettings stem_convolution(Stem stem) {
  if (stem == Stem::cifar) return three_by_three(1);
  return {.kernel = 7, .stride = 2, .padding = 3};
}

using Blocks = std::array<int, 4>;  // in each of the four stages

// The first layers: convolution, normalisation, ReLU, and with Stem::imagenet a max-pooling.
class FirstLayers {
 public:
  FirstLayers(Parameters& parameters, const ModelSettings& settings)
      : has_pool_(settings.stem == Stem::imagenet),
        conv_(parameters, "conv1", settings.image[2], kStemChannels,
              stem_convolution(settings.stem)),
        bn_(parameters, "bn1", kStemChannels) {}

  Value operator()(Tape& tape, const Value& images) const {
    const Value x = bn_.relu(tape, conv_(tape, images));
    return has_pool_ ? tensor::max_pool2d(tape, x, 3, 2, 1) : x;
  }

 private:
  bool has_pool_;
  Conv2d conv_;
  BatchNorm2d bn_;
};

// Each block is a part. Layers are registered in torchvision's order.
template <typename Block>
std::unique_ptr<Chain> make(Parameters& parameters, const ModelSettings& settings,
                            const Blocks& blocks) {
  auto chain = std::make_unique<Chain>(settings.parts);
  chain->add([&] { return FirstLayers(parameters, settings); });
  std::int64_t in = kStemChannels, width = 64;
  for (int layer = 1; layer <= 4; ++layer) {
    for (int block = 0; block < blocks[static_cast<std::size_t>(layer - 1)]; ++block) {
      const std::string name = "layer" + std::to_string(layer) + "." + std::to_string(block);
      const std::int64_t stride = layer > 1 && block == 0 ? 2 : 1;
      chain->add([&] { return Block(parameters, name, in, width, stride); });
      in = width * Block::kExpansion;
    }
    width *= 2;
  }
  chain->add([&] {
    return [fc = Linear(parameters, "fc", in, settings.classes)](Tape& tape, const Value& x) {
      return fc(tape, tensor::global_average_pool(tape, x));
    };
  });
  return chain;
}

}  // namespace

std::unique_ptr<Chain> make_resnet18(Parameters& parameters, const ModelSettings& settings) {
  return make<BasicBlock>(parameters, settings, {2, 2, 2, 2});
}

std::unique_ptr<Chain> make_resnet34(Parameters& parameters, const ModelSettings& settings) {
  return make<BasicBlock>(parameters, settings, {3, 4, 6, 3});
}

std::unique_ptr<Chain> make_resnet50(Parameters& parameters, const ModelSettings& settings) {
  return make<Bottleneck>(parameters, settings, {3, 4, 6, 3});
}

std::unique_ptr<Chain> make_resnet101(Parameters& parameters, const ModelSettings& settings) {
  return make<Bottleneck>(parameters, settings, {3, 4, 23, 3});
}

}  // namespace kolo::train
