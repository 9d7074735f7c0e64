// Chain: a model of parts, each with one input and one output.
//
// All models are chains, so that a pipeline can cut them between two parts. A network may keep
// only consecutive parts. The other layers are not made, so they take no memory.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tensor/network.h"
#include "train/models/model.h"

namespace kolo::train {

class Chain final : public tensor::Model {
 public:
  // Computes a part: returns its output.
  using Part = std::function<tensor::Value(tensor::Tape& tape, const tensor::Value& x)>;

  explicit Chain(PartRange kept) : kept_(kept) {}

  // Adds the next part. Calls `make`, which registers the part's layers, only if this network keeps
  // the part.
  template <typename Make>
  void add(Make make) {
    if (kept_.has(all_++)) parts_.push_back(make());
  }
  // All parts of the model, also those that this network does not have.
  int all_parts() const { return all_; }

  tensor::Value forward(tensor::Tape& tape, const tensor::Value& x) override {
    tensor::Value y = x;
    for (const Part& part : parts_) y = part(tape, y);
    return y;
  }

 private:
  PartRange kept_;
  int all_ = 0;
  std::vector<Part> parts_;
};

}  // namespace kolo::train
