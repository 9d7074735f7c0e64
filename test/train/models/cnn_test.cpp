// The model `cnn` against torch: names and shapes, and logits, loss and gradients of whole passes.
#include "train/models/cnn.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "test/support/catch.h"
#include "test/train/models/reference_checks.h"

namespace kolo::train {
namespace {

std::unique_ptr<tensor::Network> network_for(const tensor::Shape& image,
                                             const std::string& backend) {
  return make_network("cnn", {.image = image, .classes = 10}, tensor::make_backend(backend, 1), 1);
}

TEST_CASE("cnn has the parameters of torch's layers, in their order") {
  tensor::Parameters grey, rgb;
  make_model("cnn", grey, {.image = {28, 28, 1}});
  check_parameters(grey, read_reference("cnn"));
  CHECK(grey.count() == 421'642);
  make_model("cnn", rgb, {.image = {32, 32, 3}});
  CHECK(rgb.count() == 545'098);
}

TEST_CASE("cnn rejects images that two poolings leave empty") {
  tensor::Parameters parameters;
  CHECK_THROWS_WITH(make_model("cnn", parameters, {.image = {28, 3, 1}}),
                    "model 'cnn': images must be at least 4 x 4, not 28x3x1");
  CHECK_NOTHROW(make_model("cnn", parameters, {.image = {4, 4, 1}}));
}

TEST_CASE("cnn begins with torch's default values: uniform in +-1 / sqrt(fan_in)") {
  const auto network = network_for({28, 28, 1}, "reference");
  const tensor::Parameters& parameters = network->parameters();
  const auto check_range = [&](const std::string& layer, double fan_in) {
    for (const char* part : {".weight", ".bias"}) {
      CAPTURE(layer, part);
      const int id = parameters.find(layer + part);
      const tensor::Shape& shape = parameters.list()[static_cast<std::size_t>(id)].shape;
      std::vector<float> values(static_cast<std::size_t>(shape.count()));
      parameters.export_values(id, values);
      const auto [least, most] = std::ranges::minmax(values);
      const double bound = 1 / std::sqrt(fan_in);
      CHECK((least >= -bound && least < -0.7 * bound));
      CHECK((most <= bound && most > 0.7 * bound));
    }
  };
  check_range("conv1", 9);
  check_range("conv2", 32 * 9);
  check_range("fc1", 64 * 7 * 7);
}

TEST_CASE("cnn gives torch's results with every backend") {
  const ReferenceFile reference = read_reference("cnn");
  REQUIRE(reference.cases.size() == 2);
  for (const std::string& backend : tensor::backend_names()) {
    for (const ReferenceCase& one : reference.cases) {
      CAPTURE(backend, one.name);
      const auto network = network_for({one.side, one.side, one.channels}, backend);
      import_reference(network->parameters());
      check_passes(*network, one);
      const Worst gradient = worst_gradient(one, network->parameters());
      INFO("farthest gradient: " << gradient.where);
      CHECK(gradient.deviation < kGradientTolerance);
    }
  }
}

}  // namespace
}  // namespace kolo::train
