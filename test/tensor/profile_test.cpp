// The times of operations, on a clock that each read moves on by a second.

#include "tensor/profile.h"

#include "test/support/catch.h"
#include "test/tensor/small_models.h"

namespace kolo::tensor::test {

namespace {

// Convolution, ReLU, pooling, convolution, addition with ReLU, average, layer, loss.
const SmallModel kModel = pooled("max pool 2x2", {6, 4, 3}, 16, 2, 2, 0);
constexpr int kBatch = 2;

std::vector<std::string> kinds_of(const Profile& profile) {
  std::vector<std::string> kinds;
  for (const OperationTime& one : profile.operations()) kinds.emplace_back(one.operation.kind);
  return kinds;
}

}  // namespace

TEST_CASE("a profile has the time of each operation, without that of hooks") {
  double seconds = 0;
  Profile profile([&seconds] { return seconds += 1; });
  Network network = make_network(kModel, "reference");
  const RandomBatch batch(kModel.image, kBatch, kClasses, 1);
  const auto hook = [&seconds](ParameterId) { seconds += 100; };
  network.set_profile(&profile);
  for (int pass = 0; pass < 2; ++pass) {
    network.forward(batch.view(), Mode::training, hook);
    network.backward(hook);
  }
  CHECK(kinds_of(profile) == std::vector<std::string>{"conv2d", "relu", "max_pool2d", "conv2d",
                                                      "add", "global_average_pool", "linear",
                                                      "softmax_cross_entropy"});
  for (const OperationTime& one : profile.operations()) {
    const bool has_parameters = one.operation.parameter >= 0;  // two, each with a pause
    INFO(one.operation.kind);
    CHECK(one.forward == (has_parameters ? 2 * 3 : 2 * 1));
    CHECK(one.backward == (has_parameters ? 2 * 3 : 2 * 1));
  }
}

TEST_CASE("a profile counts floating-point operations, and names parameters") {
  Profile profile;
  Network network = make_network(kModel, "reference");
  const RandomBatch batch(kModel.image, kBatch, kClasses, 1);
  network.set_profile(&profile);
  network.forward(batch.view(), Mode::training);
  network.backward();
  const auto& all = profile.operations();
  REQUIRE(all.size() == 8);
  CHECK(all[0].operation.flops == 2 * 2 * kBatch * 6 * 4 * 16 * 3 * 9);  // no gradient of images
  CHECK(all[1].operation.flops == 0);
  CHECK(all[3].operation.flops == 3 * 2 * kBatch * 3 * 2 * 16 * 16);
  CHECK(all[6].operation.flops == 3 * 2 * kBatch * 16 * kClasses);
  const auto list = network.parameters().list();
  CHECK(list[static_cast<std::size_t>(all[3].operation.parameter)].name == "second.weight");
}

TEST_CASE("evaluation, and passes without a profile, are not profiled") {
  double seconds = 0;
  Profile profile([&seconds] { return seconds += 1; });
  Network network = make_network(kModel, "reference");
  const RandomBatch batch(kModel.image, kBatch, kClasses, 1);
  network.forward(batch.view(), Mode::training);
  network.set_profile(&profile);
  network.backward();
  network.forward(batch.view(), Mode::evaluation);
  network.set_profile(nullptr);
  network.forward(batch.view(), Mode::training);
  network.backward();
  CHECK(profile.operations().empty());
  CHECK(seconds == 0);
}

}  // namespace kolo::tensor::test
