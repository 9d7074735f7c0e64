// Invalid shapes are rejected with a message that says what was expected.

#include "tensor/ops/linear.h"
#include "tensor/ops/softmax_cross_entropy.h"
#include "test/support/catch.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {

namespace {

// A dry tape with a few parameters.
struct Bench {
  Parameters parameters;
  Pool pool;
  ParameterId weight = parameters.add("weight", {8, 4, 3, 3}, Initial::zero);
  ParameterId matrix = parameters.add("matrix", {5, 12}, Initial::zero);
  ParameterId bias = parameters.add("bias", {5}, Initial::zero);
  Tape tape{nullptr, parameters, pool, Mode::dry};

  Value image(const Shape& shape) { return tape.input(Tensor::outline(shape)); }
};

}  // namespace

TEST_CASE("operations reject shapes that do not fit, and name them") {
  Bench b;
  CHECK_THROWS_WITH(conv2d(b.tape, b.image({2, 8, 8, 3}), b.weight, -1, {3, 1, 1, false}),
                    "conv2d: weight: expected shape 8x3x3x3, got 8x4x3x3");
  CHECK_THROWS_WITH(conv2d(b.tape, b.image({2, 4}), b.weight, -1, {3, 1, 1, false}),
                    "conv2d: the input must be N x H x W x C, got 2x4");
  CHECK_THROWS_WITH(conv2d(b.tape, b.image({2, 1, 2, 4}), b.weight, -1, {3, 1, 0, false}),
                    "conv2d: a kernel of 3 with stride 1 and padding 0 does not fit input 2x1x2x4");
  CHECK_THROWS_WITH(linear(b.tape, b.image({2, 11}), b.matrix, b.bias),
                    "linear: weight: expected shape 5x11, got 5x12");
  CHECK_THROWS_WITH(add(b.tape, b.image({2, 3, 3, 4}), b.image({2, 3, 4, 4}), false),
                    "add: expected shape 2x3x3x4, got 2x3x4x4");
  CHECK_THROWS_WITH(
      max_pool2d(b.tape, b.image({2, 1, 1, 4}), 3, 2, 0),
      "max_pool2d: kernel 3 (1 to 15), stride 2 (at least 1) and padding 0 (at most half "
      "the kernel) do not fit input 2x1x1x4");
  CHECK_THROWS_WITH(global_average_pool(b.tape, b.image({2, 4})),
                    "global_average_pool: the input must be N x H x W x C, got 2x4");
}

TEST_CASE("the loss rejects labels that do not fit") {
  Bench b;
  const std::vector<std::int32_t> labels{0, 5};
  CHECK_THROWS_WITH(softmax_cross_entropy(b.tape, b.image({2, 5}), labels, 2),
                    "softmax_cross_entropy: label 5 with logits for 5 classes");
  CHECK_THROWS_WITH(softmax_cross_entropy(b.tape, b.image({3, 5}), labels, 2),
                    "softmax_cross_entropy: 2 labels need logits of shape 2 x classes, got 3x5");
  CHECK_THROWS_AS(softmax_cross_entropy(b.tape, b.image({2, 6}), labels, 0), std::invalid_argument);
}

TEST_CASE("a network rejects batches whose images and labels differ in number") {
  const SmallModel model = two_convolutions("1x1", {3, 2, 1}, 4, {1, 1, 0, false});
  Network network = make_network(model, "reference");
  RandomBatch batch(model.image, 4, kClasses, 1);
  batch.labels.pop_back();
  CHECK_THROWS_WITH(network.forward(batch.view(), Mode::training),
                    "a batch of 3 labels needs images of shape 3x3x2x1, got 24 numbers");
  batch.labels.clear();
  CHECK_THROWS_WITH(network.forward(batch.view(), Mode::training),
                    "a batch needs at least one sample");
}

TEST_CASE("invalid shapes and unknown backends are rejected") {
  CHECK_THROWS_WITH((Shape{2, 0}), "a dimension of size 0 is not possible");
  CHECK_THROWS_WITH((Shape{1, 1, 1, 1, 1}), "a shape has at most 4 dimensions, not 5");
  CHECK(Shape{64, 8, 8, 256}.text() == "64x8x8x256");
  CHECK_THROWS_WITH(make_backend("abacus", 1),
                    ContainsSubstring("there is no backend 'abacus' in this build; it has: ") &&
                        ContainsSubstring("reference"));
  CHECK_THROWS_WITH(make_backend("reference", 0),
                    "backend reference: at least one thread is needed, not 0");
  CHECK_THROWS_WITH(precision_from("half"), ContainsSubstring("there are: float32, bfloat16"));
}

}  // namespace kolo::tensor::test
