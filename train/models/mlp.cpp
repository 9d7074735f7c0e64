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

}  // namespace

std::unique_ptr<Chain> make_mlp(Parameters& parameters, const ModelSettings& settings) {
  auto chain = std::make_unique<Chain>(settings.parts);
  chain->add([&] {
    return [fc = Linear(parameters, "fc1", settings.image.count(), kHidden)](Tape& tape,
                                                                             const Value& x) {
      return tensor::relu(tape, fc(tape, tensor::flatten(tape, x)));
    };
  });
  chain->add([&] {
    return [fc = Linear(parameters, "fc2", kHidden, kHidden)](Tape& tape, const Value& x) {
      return tensor::relu(tape, fc(tape, x));
    };
  });
  chain->add([&] { return Linear(parameters, "fc3", kHidden, settings.classes); });
  return chain;
}

}  // namespace kolo::train
