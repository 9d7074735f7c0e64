#include "train/models/mlp.h"

#include "tensor/layers.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/pool.h"

namespace kolo::train {
namespace {

using tensor::Linear;
using tensor::Parameters;
using tensor::Tape;
using tensor::Value;

constexpr std::int64_t kHidden = 512;

class Mlp final : public tensor::Model {
 public:
  Mlp(Parameters& parameters, const ModelSettings& settings)
      : fc1_(parameters, "fc1", settings.image.count(), kHidden),
        fc2_(parameters, "fc2", kHidden, kHidden),
        fc3_(parameters, "fc3", kHidden, settings.classes) {}

  Value forward(Tape& tape, const Value& images) override {
    Value x = tensor::relu(tape, fc1_(tape, tensor::flatten(tape, images)));
    x = tensor::relu(tape, fc2_(tape, x));
    return fc3_(tape, x);
  }

 private:
  Linear fc1_;
  Linear fc2_;
  Linear fc3_;
};

}  // namespace

std::unique_ptr<tensor::Model> make_mlp(Parameters& parameters, const ModelSettings& settings) {
  return std::make_unique<Mlp>(parameters, settings);
}

}  // namespace kolo::train
