// The table of models; training of the small model.
#include "train/models/model.h"

#include <set>
#include <stdexcept>
#include <string>

#include "tensor/network.h"
#include "test/support/catch.h"
#include "test/train/real_data.h"
#include "train/data/loader.h"
#include "train/optimizers/learning_rate.h"
#include "train/optimizers/sgd.h"

namespace kolo::train {
namespace {

TEST_CASE("an unknown model or stem is rejected with the list of known ones") {
  tensor::Parameters parameters;
  const std::vector<std::string> names{"resnet18", "resnet34", "resnet50", "resnet101",
                                       "cnn",      "mlp",      "small"};
  CHECK(model_names() == names);
  CHECK_THROWS_WITH(
      make_model("resnet51", parameters, {}),
      "unknown model 'resnet51'; expected one of resnet18, resnet34, resnet50, resnet101, "
      "cnn, mlp, small");
  CHECK_THROWS_WITH(stem_from("mnist"), "unknown stem 'mnist'; expected one of imagenet, cifar");
}

TEST_CASE("models reject unsupported images and numbers of classes") {
  tensor::Parameters parameters;
  CHECK_THROWS_AS(make_model("small", parameters, {.classes = 1}), std::invalid_argument);
  CHECK_THROWS_AS(make_model("small", parameters, {.image = {4, 32, 3}}), std::invalid_argument);
  CHECK_THROWS_AS(make_model("resnet50", parameters, {.image = {32, 32}}), std::invalid_argument);
}

TEST_CASE("resnet50 for ten classes and with the cifar stem has the right parameters") {
  const auto count = [](Stem stem, const tensor::Shape& image) {
    tensor::Parameters parameters;
    make_model("resnet50", parameters, {.image = image, .classes = 10, .stem = stem});
    return parameters.count();
  };
  CHECK(count(Stem::imagenet, {32, 32, 3}) == 23'528'522);
  CHECK(count(Stem::cifar, {32, 32, 3}) == 23'528'522 - 64 * 3 * (49 - 9));
}

TEST_CASE("the mlp has 669,706 parameters for handwritten digits") {
  tensor::Parameters parameters;
  make_model("mlp", parameters, {.image = {28, 28, 1}});
  CHECK(parameters.count() == 669'706);
}

struct Training {
  double first_loss = 0, last_loss = 0;  // means over ten iterations
  double accuracy = 0;
};

double accuracy_of(tensor::Network& network, const Dataset& test) {
  Loader loader(test, BatchPlan(test.size(), 100, 1), {.is_shuffled = false});
  std::int64_t correct = 0, samples = 0;
  for (Minibatch batch; loader.next(batch);) {
    const tensor::Outcome outcome =
        network.forward({batch.images, batch.labels}, tensor::Mode::evaluation);
    correct += outcome.correct;
    samples += outcome.samples;
  }
  REQUIRE(samples == test.size());
  return static_cast<double>(correct) / static_cast<double>(samples);
}

// Trains a model on `train` in batches of 50.
Training train_model(const std::string& name, const Dataset& train, const Dataset& test,
                     std::int64_t epochs, std::uint64_t seed) {
  const ImageShape shape = train.shape();
  const tensor::Shape image{shape.height, shape.width, shape.channels};
  const auto made = make_network(name, {.image = image},
                                 tensor::make_backend(tensor::backend_names().front(), 1), seed);
  tensor::Network& network = *made;
  tensor::Parameters& parameters = network.parameters();
  const BatchPlan plan(train.size(), 50, 1);
  const std::int64_t iterations = plan.iterations_per_epoch();
  const LearningRate rate({.base = 0.05f,
                           .reference_batch = 50,
                           .global_batch = 50,
                           .total_iterations = epochs * iterations});
  Sgd sgd({}, 0, static_cast<std::int64_t>(parameters.values().size()));
  Loader loader(train, plan, {.seed = seed, .epochs = epochs});
  Training result;
  std::int64_t done = 0;
  for (Minibatch batch; loader.next(batch);) {
    const double divisor = static_cast<double>(batch.global_count);
    const tensor::Outcome outcome =
        network.forward({batch.images, batch.labels, divisor}, tensor::Mode::training);
    network.backward();
    sgd.apply(0, parameters.values(), parameters.gradients(), {rate.at(done), done + 1});
    if (done < 10) result.first_loss += outcome.loss / 10;
    if (done >= epochs * iterations - 10) result.last_loss += outcome.loss / 10;
    ++done;
  }
  result.accuracy = accuracy_of(network, test);
  return result;
}

TEST_CASE("the small model learns the digits, with equal results for equal seeds") {
  const auto train = open_dataset("digits", Split::train, {.train_size = 10'000});
  const auto test = open_dataset("digits", Split::test, {.test_size = 1000});
  const Training once = train_model("small", *train, *test, 1, 5);
  INFO("loss " << once.first_loss << " -> " << once.last_loss << ", accuracy " << once.accuracy);
  CHECK(once.last_loss < 0.5 * once.first_loss);
  CHECK(once.accuracy > 0.6);
  const Training again = train_model("small", *train, *test, 1, 5);
  CHECK(again.last_loss == once.last_loss);
  CHECK(again.accuracy == once.accuracy);
}

TEST_CASE("the small model learns real house numbers") {
  const std::filesystem::path folder = real_data("svhn");
  if (is_skipped_without(folder / "train_32x32.subset.mat")) return;
  const auto train = open_dataset("svhn:" + folder.string(), Split::train);
  const auto test = open_dataset("svhn:" + folder.string(), Split::test);
  const Training result = train_model("small", *train, *test, 3, 5);
  INFO("loss " << result.first_loss << " -> " << result.last_loss << ", accuracy "
               << result.accuracy);
  CHECK(result.last_loss < 0.6 * result.first_loss);
  CHECK(result.accuracy > 0.5);  // the constant answer 1 gives 0.1875
}

TEST_CASE("the cnn and the mlp learn real handwritten digits") {
  const std::string model = GENERATE("cnn", "mlp");
  CAPTURE(model);
  const std::filesystem::path folder = real_data("mnist");
  if (is_skipped_without(folder / "train-images-idx3-ubyte.gz")) return;
  const auto train = open_dataset("mnist:" + folder.string(), Split::train, {.train_size = 2500});
  const auto test = open_dataset("mnist:" + folder.string(), Split::test, {.test_size = 500});
  const Training result = train_model(model, *train, *test, 1, 5);
  INFO("loss " << result.first_loss << " -> " << result.last_loss << ", accuracy "
               << result.accuracy);
  CHECK(result.last_loss < 0.5 * result.first_loss);
  CHECK(result.accuracy > 0.8);
}

}  // namespace
}  // namespace kolo::train
